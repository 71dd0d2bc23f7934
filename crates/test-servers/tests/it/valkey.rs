use surefoot_test_servers::{VALKEY_URL, Valkey, given};

use crate::probe::{answer, listens};

const QUIT: &str = "QUIT\r\n";

#[test]
fn the_shared_server_answers() {
    let answer = answer(&given(VALKEY_URL).unwrap(), &format!("PING\r\n{QUIT}"));
    assert!(answer.starts_with("+PONG"), "{answer}");
}

#[test]
fn a_killed_server_comes_back_empty() {
    let mut server = Valkey::given().unwrap().start().unwrap();
    let url = server.url().to_owned();
    assert_eq!(answer(&url, &format!("SET k v\r\nGET k\r\n{QUIT}")), "+OK\r\n$1\r\nv\r\n+OK\r\n");
    server.kill().unwrap();
    assert!(!listens(&url));
    server.restart().unwrap();
    assert_eq!(answer(server.url(), &format!("GET k\r\n{QUIT}")), "$-1\r\n+OK\r\n");
    assert_eq!(server.ended(), None);
    server.stop().unwrap();
    assert!(!listens(&url));
}
