//! The builder.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use surefoot_kernel_core::{Clock, Ids};
use surefoot_operator::Operator;

use crate::shared::Shared;
use crate::{Access, access, api, pages};

/// HTTP API and web console on one store.
#[derive(Clone)]
#[must_use = "a console does nothing until its router is served"]
pub struct Console {
    operator: Operator,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    access: Access,
}

impl Console {
    /// On the store of an operator; in whose name it acts is each caller's own. `ids` makes the ids of events, and
    /// `clock` is compared with the store's in health.
    pub fn new(
        operator: Operator,
        ids: impl Ids + 'static,
        clock: impl Clock + 'static,
        access: Access,
    ) -> Self {
        Self { operator, ids: Arc::new(ids), clock: Arc::new(clock), access }
    }

    /// The router: the API under `/api/v1`, the pages beside it.
    pub fn router(self) -> Router {
        let Self { operator, ids, clock, access } = self;
        let shared = Shared::new(operator, ids, clock, access);
        Router::new()
            .nest("/api/v1", api::router())
            .merge(pages::router())
            .layer(from_fn_with_state(shared.clone(), access::guard))
            .with_state(shared)
    }
}
