//! Style and script: two files of our own, compiled in.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("../../assets/console.css");
const SCRIPT: &str = include_str!("../../assets/console.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// Their names hold a hash of what is in them, so that a browser may keep them for ever.
pub(crate) struct Assets {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
}

pub(crate) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: named("css", STYLE),
    script: named("js", SCRIPT),
    icon: named("svg", ICON),
});

fn named(ending: &str, content: &str) -> String {
    let hash = Sha256::digest(content);
    let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("console-{hash}.{ending}")
}

pub(crate) async fn asset(name: Result<Path<String>, PathRejection>) -> Response {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let found = [
        (&ASSETS.style, STYLE, "text/css; charset=utf-8"),
        (&ASSETS.script, SCRIPT, "text/javascript; charset=utf-8"),
        (&ASSETS.icon, ICON, "image/svg+xml"),
    ];
    let Some((_, content, kind)) = found.into_iter().find(|(known, _, _)| **known == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    let headers =
        [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CACHE_CONTROL, kept)];
    (headers, content).into_response()
}
