use surefoot_test_servers::{NATS_URL, Nats, given};

use crate::probe::{answer, listens};

#[test]
fn the_shared_server_has_jetstream() {
    let info = answer(&given(NATS_URL).unwrap(), "no such command\r\n");
    assert!(info.starts_with("INFO "), "{info}");
    assert!(info.contains(r#""jetstream":true"#), "{info}");
}

#[test]
fn a_cluster_lives_on_without_one_and_takes_it_back() {
    let mut cluster = Nats::given().unwrap().cluster(3).unwrap();
    for server in &cluster {
        let info = answer(server.url(), "no such command\r\n");
        assert!(info.contains(r#""cluster":"surefoot""#), "{info}");
    }
    let url = cluster[1].url().to_owned();
    cluster[1].kill().unwrap();
    assert!(!listens(&url));
    assert!(listens(cluster[0].url()) && listens(cluster[2].url()));
    cluster[1].restart().unwrap();
    assert!(listens(&url));
}
