use surefoot_test_servers::{DATABASE_URL, DATABASE_URL_15, Postgres, given};

use crate::probe::{listens, sql};

const MAJOR: &str = "select current_setting('server_version_num')::int / 10000";

#[test]
fn the_shared_servers_are_of_the_newest_and_the_oldest_version() {
    assert_eq!(sql(&given(DATABASE_URL_15).unwrap(), MAJOR).unwrap(), "15");
    assert!(sql(&given(DATABASE_URL).unwrap(), MAJOR).unwrap().parse::<u32>().unwrap() >= 15);
}

#[test]
fn what_was_committed_is_there_after_a_kill_and_a_restart() {
    let mut server = Postgres::given().unwrap().start().unwrap();
    let url = server.url().to_owned();
    assert_eq!(sql(&url, "show fsync").unwrap(), "on");
    sql(&url, "create table kept (n int)").unwrap();
    for n in 0..3 {
        sql(&url, &format!("insert into kept values ({n})")).unwrap();
        server.kill().unwrap();
        assert!(sql(&url, "select 1").is_err());
        server.restart().unwrap();
        assert_eq!(server.url(), url);
        let kept = sql(&url, "select count(*) from kept").unwrap();
        assert_eq!(kept, (n + 1).to_string());
    }
    let folder = server.folder().to_owned();
    server.stop().unwrap();
    assert!(!listens(&url));
    assert!(!folder.exists());
}

#[test]
fn a_server_that_is_dropped_is_gone() {
    let server = Postgres::given_15().unwrap().unsynced().start().unwrap();
    let url = server.url().to_owned();
    assert_eq!(sql(&url, "show fsync").unwrap(), "off");
    assert_eq!(sql(&url, MAJOR).unwrap(), "15");
    let folder = server.folder().to_owned();
    drop(server);
    assert!(!listens(&url));
    assert!(!folder.exists());
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let wrong = Postgres::given().unwrap().set("no_such_setting=1");
    let error = wrong.start().unwrap_err().to_string();
    assert!(error.contains("no_such_setting"), "{error}");
    let error = Postgres::new("no/such/folder".into()).start().unwrap_err().to_string();
    assert!(error.starts_with("cannot start no/such/folder/initdb: "), "{error}");
}
