//! One table: what is routed is described, and what is described is routed.

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::access::{Caller, Role};
use crate::problem::Problem;
use crate::request::{Input, refuse_query};
use crate::shared::Shared;

/// Makes the description of a type.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// An operation: where, what, and what stands in its description.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) method: Method,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Option<Shape>,
    pub(super) body: Option<Shape>,
    pub(super) answer: Answer,
    /// Whether it takes `If-Match`, and which.
    pub(super) on_revision: Option<OnRevision>,
    handler: MethodRouter<Shared>,
}

/// What an operation answers with.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// JSON of this shape.
    Json(Shape),
    /// The same, with the run's revision as its `ETag`.
    Revisioned(Shape),
    /// Server-sent events.
    Events,
}

/// Which `If-Match` an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnRevision {
    /// The revision that was looked at.
    Seen,
    /// The same, or `*`.
    SeenOrAny,
}

fn shape<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Parameters are described one by one, not as a type.
fn properties<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

impl Route {
    /// Looks.
    pub(super) fn get<H, T>(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        Self::new(path, Method::GET, id, summary, get(handler))
    }

    /// Acts: for operators only, whatever its handler asks for.
    pub(super) fn post<H, T>(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        Self::new(path, Method::POST, id, summary, post(handler))
    }

    fn new(
        path: &'static str,
        method: Method,
        id: &'static str,
        summary: &'static str,
        handler: MethodRouter<Shared>,
    ) -> Self {
        let (query, body, answer) = (None, None, Answer::Events);
        Self { path, method, id, summary, query, body, answer, on_revision: None, handler }
    }

    pub(super) fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(properties::<T>), ..self }
    }

    pub(super) fn body<T: Input>(self) -> Self {
        Self { body: Some(shape::<T>), ..self }
    }

    pub(super) fn answers<T: JsonSchema>(self) -> Self {
        Self { answer: Answer::Json(shape::<T>), ..self }
    }

    pub(super) fn answers_revisioned<T: JsonSchema>(self) -> Self {
        Self { answer: Answer::Revisioned(shape::<T>), ..self }
    }

    pub(super) fn on_revision(self, which: OnRevision) -> Self {
        Self { on_revision: Some(which), ..self }
    }

    /// Who may call it.
    pub(super) fn role(&self) -> Role {
        if self.method == Method::GET { Role::Viewer } else { Role::Operator }
    }

    /// The handler behind what holds for every operation of its kind.
    pub(super) fn guarded(self, shared: &Shared) -> (&'static str, MethodRouter<Shared>) {
        let role = self.role();
        let mut handler = self.handler;
        if self.query.is_none() {
            handler = handler.layer(from_fn(without_query));
        }
        let handler = match role {
            Role::Viewer => handler.layer(from_fn_with_state(shared.clone(), as_viewer)),
            Role::Operator => handler.layer(from_fn_with_state(shared.clone(), as_operator)),
        };
        (self.path, handler)
    }
}

async fn without_query(request: Request, next: Next) -> Response {
    match refuse_query(request.uri().query()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn as_viewer(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    admit(&shared, request, next, Caller::may_look).await
}

async fn as_operator(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    admit(&shared, request, next, Caller::may_act_by_api).await
}

/// Who asks is found out before anything of the request is read.
async fn admit(
    shared: &Shared,
    request: Request,
    next: Next,
    may: fn(&Caller) -> Result<(), Problem>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = Caller::of(&parts, shared).and_then(|caller| may(&caller).map(|()| caller));
    match caller {
        Ok(caller) => {
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => problem.into_response(),
    }
}
