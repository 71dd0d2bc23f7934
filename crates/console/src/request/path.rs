//! Parts of a path.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::shared::Shared;

/// The parts of a path that are to be filled in, as text or several texts.
#[derive(Debug, Clone)]
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for PathOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, shared).await;
        let odd = |rejection: PathRejection| Problem::bad_request(rejection.body_text());
        path.map(|Path(of)| Self(of)).map_err(odd)
    }
}

/// One part as what it names.
pub(crate) fn named<T: FromStr<Err: Display>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| Problem::bad_request(format!("path: {error}")))
}
