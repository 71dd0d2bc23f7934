//! Slow and half-open clients hold nobody else up.

use std::time::Duration;

use surefoot_console::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, Served, VIEWER, console, with_tokens};
use crate::world::World;

const HALF: &[u8] = b"GET /api/v1/runs HTTP/1.1\r\nHost: here\r\nX-";

#[tokio::test]
async fn half_open_clients_make_room_for_others() {
    let world = World::published().await;
    let limits = Limits { connections: 4, head: PATIENCE, ..Limits::default() };
    let served = Served::on(console(&world, with_tokens()), limits).await;
    let mut held = Vec::new();
    for _ in 0..32 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(HALF).await.unwrap();
        held.push(stream);
        served.viewer().get("/runs").await.done();
    }
    // The first ones had to go.
    let mut left = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, held[0].read_to_end(&mut left)).await;
    assert!(closed.is_ok());
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let world = World::published().await;
    let limits = Limits { head: Duration::from_millis(100), ..Limits::default() };
    let served = Served::on(console(&world, with_tokens()), limits).await;
    for sent in [&b""[..], HALF] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut text = Vec::new();
        let closed = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await;
        assert!(closed.is_ok(), "{}", String::from_utf8_lossy(sent));
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_given_up() {
    let world = World::published().await;
    let limits = Limits { connections: 1, unread: Duration::from_millis(100), ..Limits::default() };
    let served = Served::on(console(&world, with_tokens()), limits).await;
    // Asks for more than the buffers between the two can hold, and reads none of it.
    let mut deaf = TcpStream::connect(served.address).await.unwrap();
    let ask = format!(
        "GET /api/v1/openapi.json HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {VIEWER}\r\n\r\n"
    );
    let flood = tokio::spawn(async move { while deaf.write_all(ask.as_bytes()).await.is_ok() {} });
    let ended = tokio::time::timeout(PATIENCE, flood).await;
    assert!(ended.is_ok(), "the server goes on waiting for it");
    served.viewer().get("/runs").await.done();
}

#[tokio::test]
async fn an_endless_head_is_refused() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let line = format!("X-Long: {}\r\n", "a".repeat(1_000));
    let flood = async {
        if stream.write_all(HALF).await.is_ok() {
            while stream.write_all(line.as_bytes()).await.is_ok() {}
        }
    };
    assert!(tokio::time::timeout(PATIENCE, flood).await.is_ok());
}
