//! What a statement meets on its way: the server's word, asked beside the proxy, tells what became of it.

use surefoot_test_servers::{DATABASE_URL, Fate, PostgresProxy, given};

use crate::probe::sql;

/// A table of its own, and the way to it through a proxy.
struct Table {
    direct: String,
    through: String,
    proxy: PostgresProxy,
    name: String,
}

impl Table {
    fn new(name: &str) -> Self {
        let direct = given(DATABASE_URL).unwrap();
        let proxy = PostgresProxy::start(&direct).unwrap();
        let name = format!("proxy_{name}_{}", std::process::id());
        sql(&direct, &format!("create table {name} (n int)")).unwrap();
        let (_, base) = direct.rsplit_once('/').unwrap();
        let user = direct.split_once("://").unwrap().1.split('@').next().unwrap();
        let through = format!("postgres://{user}@127.0.0.1:{}/{base}", proxy.port());
        Self { direct, through, proxy, name }
    }

    fn insert(&self) -> Result<String, String> {
        sql(&self.through, &format!("insert into {} values (7)", self.name))
    }

    fn count(&self) -> String {
        sql(&self.direct, &format!("select count(*) from {}", self.name)).unwrap()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        drop(sql(&self.direct, &format!("drop table {}", self.name)));
    }
}

#[test]
fn what_nobody_traps_is_carried() {
    let table = Table::new("plain");
    table.insert().unwrap();
    assert_eq!(sql(&table.through, "select 6 * 7").unwrap(), "42");
    assert_eq!(table.count(), "1");
    assert_eq!(table.proxy.seen().last().unwrap(), "select 6 * 7");
}

#[test]
fn a_request_is_lost_and_an_answer_is_lost() {
    let table = Table::new("lost");
    let lost = table.proxy.trap("insert", Fate::LoseRequest);
    table.insert().unwrap_err();
    assert_eq!((table.count().as_str(), lost.caught()), ("0", 1));
    let lost = table.proxy.trap_nth(2, "insert", Fate::LoseAnswer);
    table.insert().unwrap();
    table.insert().unwrap_err();
    assert!(lost.is_settled());
    assert_eq!(table.count(), "2");
}

#[test]
fn what_comes_late_comes_when_it_is_let() {
    let table = Table::new("late");
    let late = table.proxy.trap("insert", Fate::ComeLate);
    table.insert().unwrap_err();
    assert!(late.is_caught());
    assert_eq!(table.count(), "0");
    late.release();
    assert!(late.is_settled());
    assert_eq!(table.count(), "1");
}

#[test]
fn a_client_waits_for_what_is_delayed() {
    let table = Table::new("delayed");
    for (fate, there) in [(Fate::Delay, "0"), (Fate::DelayAnswer, "2")] {
        let delayed = table.proxy.trap("insert", fate);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| table.insert());
            assert!(delayed.is_caught());
            while table.count() != there {}
            assert!(!waits.is_finished());
            delayed.release();
            waits.join().unwrap().unwrap();
        });
        assert!(delayed.is_settled());
    }
    assert_eq!(table.count(), "2");
}

/// The error is the server's own, and aborts the transaction.
#[test]
fn a_statement_fails_as_the_servers_own_would() {
    let table = Table::new("fails");
    let full = table.proxy.trap_all("insert", Fate::Fail("53100"));
    assert!(table.insert().unwrap_err().contains("by a test"));
    assert!(table.insert().is_err());
    assert_eq!((table.count().as_str(), full.caught()), ("0", 2));
    full.disarm();
    table.insert().unwrap();
    assert_eq!(table.count(), "1");
}

#[test]
fn a_proxy_that_is_down_lets_nobody_through() {
    let table = Table::new("down");
    table.proxy.down(true);
    table.insert().unwrap_err();
    table.proxy.down(false);
    table.insert().unwrap();
    assert_eq!(table.count(), "1");
}
