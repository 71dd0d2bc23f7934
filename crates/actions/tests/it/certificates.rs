//! Every action, driven through repeats, crashes and duplicates: does it honour its class?

use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

use surefoot_actions::ai::{
    Ai, Classify, ClassifyInput, ClassifyMany, ClassifyManyInput, Extract, ExtractInput,
    GenerateInput, GenerateText,
};
use surefoot_actions::event::{EmitEvent, EventInput, SendSignal, SignalInput};
use surefoot_actions::http::{HttpCall, HttpRequest};
use surefoot_actions::message::{DEDUPE_WINDOW_MIN, MessageInput, PublishMessage, ShortWindow};
use surefoot_actions::query::QueryInput;
use surefoot_kernel_core::TxStore as _;
use surefoot_store_postgres::PostgresTx;
use surefoot_store_sqlite::{SqliteTx, sqlx};
use surefoot_sync_core::{Coordinator as _, ReadTopic, ResourceId, Topic, TopicSettings};
use surefoot_testkit::{MemoryBroker, certify};

use crate::broker;
use crate::database::{postgres, sqlite};
use crate::events::statements;
use crate::server::{Server, client};

fn booking() -> QueryInput {
    let input = json!({ "statement": "book", "params": { "item": "bolt", "pieces": 3 } });
    serde_json::from_value(input).unwrap()
}

fn event() -> EventInput {
    serde_json::from_value(json!({ "type": "shop.booked", "data": 7 })).unwrap()
}

fn signal() -> SignalInput {
    serde_json::from_value(json!({ "kind": "paid", "key": "o-1", "data": 7 })).unwrap()
}

fn prompt() -> GenerateInput {
    serde_json::from_value(json!({ "prompt": "Say hello" })).unwrap()
}

fn one() -> ClassifyInput {
    serde_json::from_value(json!({ "text": "hello", "labels": ["friendly", "rude"] })).unwrap()
}

fn many() -> ClassifyManyInput {
    serde_json::from_value(json!({ "texts": ["hello"], "labels": ["friendly", "rude"] })).unwrap()
}

fn shape() -> ExtractInput {
    serde_json::from_value(json!({ "text": "3 bolts", "schema": { "type": "object" } })).unwrap()
}

/// Rows of a table.
macro_rules! count {
    ($store:expr, $table:literal) => {{
        let mut tx = $store.begin().await.unwrap();
        let sql = concat!("SELECT count(*) FROM ", $table);
        let count: i64 = sqlx::query_scalar(sql).fetch_one(&mut *tx).await.unwrap();
        count
    }};
}

/// A topic in memory.
struct Ready {
    topic: Arc<dyn Topic>,
}

async fn topic(window: Duration) -> Arc<dyn Topic> {
    let id = ResourceId::new("orders").unwrap();
    let settings = TopicSettings { dedupe_window: window, ..TopicSettings::new(id) };
    MemoryBroker::default().topic(settings).await.unwrap()
}

impl Ready {
    async fn new() -> Self {
        Self { topic: topic(DEDUPE_WINDOW_MIN).await }
    }

    async fn messages(&self) -> usize {
        let begin = self.topic.tail().await.unwrap();
        let all = ReadTopic { max: 100, wait: Duration::ZERO };
        self.topic.read(&begin, all).await.unwrap().len()
    }
}

/// It would take a repeat for another message.
#[tokio::test]
async fn a_topic_that_forgets_too_soon_is_refused() {
    let short = topic(Duration::from_secs(120)).await;
    let refused = PublishMessage::new().topic("orders", short).unwrap_err();
    assert_eq!(refused, ShortWindow { topic: "orders".to_owned(), got_s: 120 });
}

fn message() -> MessageInput {
    serde_json::from_value(json!({ "topic": "orders", "data": { "id": 7 } })).unwrap()
}

certify! {
    http_request: ambiguous {
        world: Server::start().await,
        action: |server| Confirming { url: server.url(""), http: HttpRequest::new(client()) },
        input: (),
        acted: |server| server.paid().len(),
        later: |server, _| server.quiet().await,
    }
    http_call: idempotent {
        world: Server::start().await,
        action: |server| Calling { url: server.url("/pay-once"), http: HttpCall::new(client()) },
        input: (),
        acted: |server| server.paid().len(),
    }
    emit_event: transactional {
        world: sqlite().await,
        action: |store| EmitEvent::new(store.clone()),
        input: event(),
        acted: |store| count!(store, "surefoot_event"),
        store: |store| store.clone(),
    }
    emit_event_shared: transactional {
        world: postgres().await,
        action: |world| EmitEvent::new(world.store.clone()),
        input: event(),
        acted: |world| count!(world.store, "surefoot.event"),
        store: |world| world.store.clone(),
    }
    signal: transactional {
        world: sqlite().await,
        action: |store| SendSignal::new(store.clone()),
        input: signal(),
        acted: |store| count!(store, "surefoot_signal"),
        store: |store| store.clone(),
    }
    signal_shared: transactional {
        world: postgres().await,
        action: |world| SendSignal::new(world.store.clone()),
        input: signal(),
        acted: |world| count!(world.store, "surefoot.signal"),
        store: |world| world.store.clone(),
    }
    query: transactional {
        world: sqlite().await,
        action: |_| statements::<SqliteTx>(),
        input: booking(),
        acted: |store| count!(store, "booking"),
        store: |store| store.clone(),
    }
    query_shared: transactional {
        world: postgres().await,
        action: |_| statements::<PostgresTx>(),
        input: booking(),
        acted: |world| count!(world.store, "booking"),
        store: |world| world.store.clone(),
    }
    generate_text: idempotent {
        world: sqlite().await,
        action: |store| GenerateText::new(Ai::new(store.clone(), "small")),
        input: prompt(),
        acted: |store| count!(store, "surefoot_task"),
    }
    generate_text_shared: idempotent {
        world: postgres().await,
        action: |world| GenerateText::new(Ai::new(world.store.clone(), "small")),
        input: prompt(),
        acted: |world| count!(world.store, "surefoot.task"),
    }
    classify: idempotent {
        world: sqlite().await,
        action: |store| Classify::new(Ai::new(store.clone(), "small")),
        input: one(),
        acted: |store| count!(store, "surefoot_task"),
    }
    classify_shared: idempotent {
        world: postgres().await,
        action: |world| Classify::new(Ai::new(world.store.clone(), "small")),
        input: one(),
        acted: |world| count!(world.store, "surefoot.task"),
    }
    classify_many: idempotent {
        world: sqlite().await,
        action: |store| ClassifyMany::new(Ai::new(store.clone(), "small")),
        input: many(),
        acted: |store| count!(store, "surefoot_task"),
    }
    classify_many_shared: idempotent {
        world: postgres().await,
        action: |world| ClassifyMany::new(Ai::new(world.store.clone(), "small")),
        input: many(),
        acted: |world| count!(world.store, "surefoot.task"),
    }
    extract: idempotent {
        world: sqlite().await,
        action: |store| Extract::new(Ai::new(store.clone(), "small")),
        input: shape(),
        acted: |store| count!(store, "surefoot_task"),
    }
    extract_shared: idempotent {
        world: postgres().await,
        action: |world| Extract::new(Ai::new(world.store.clone(), "small")),
        input: shape(),
        acted: |world| count!(world.store, "surefoot.task"),
    }
    publish_message_shared: idempotent {
        world: broker::topic(DEDUPE_WINDOW_MIN).await,
        action: |topic| PublishMessage::new().topic("orders", topic.clone()).unwrap(),
        input: message(),
        acted: |topic| broker::messages(&**topic).await,
    }
    publish_message: idempotent {
        world: Ready::new().await,
        action: |ready| PublishMessage::new().topic("orders", ready.topic.clone()).unwrap(),
        input: message(),
        acted: |ready| ready.messages().await,
    }
}

use bound::{Calling, Confirming};

/// The certificate's input is the same for every world, and each world has an address of its own: these put the one
/// into the other, and leave everything else to the action.
mod bound {
    use surefoot_actions::http::{HttpAnswer, HttpInput, HttpRequestInput};
    use surefoot_language::{
        ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, Idempotent, IdempotentCx,
        PlanResult, ReconcileResult, StepCx,
    };

    use super::*;

    pub(super) struct Confirming {
        pub(super) url: String,
        pub(super) http: HttpRequest,
    }

    impl Confirming {
        fn input(&self) -> HttpRequestInput {
            let url = &self.url;
            let input = json!({
                "method": "POST", "url": format!("{url}/pay"), "json": {},
                "confirm": { "url": format!("{url}/payments/{{effectKey}}") },
            });
            serde_json::from_value(input).unwrap()
        }
    }

    impl Ambiguous for Confirming {
        const NAME: &'static str = HttpRequest::NAME;
        type Input = ();
        type Output = HttpAnswer;

        async fn run(&self, cx: &AmbiguousCx, (): ()) -> AmbiguousResult<HttpAnswer> {
            self.http.run(cx, self.input()).await
        }

        async fn reconcile(&self, cx: &AmbiguousCx, (): ()) -> ReconcileResult<HttpAnswer> {
            self.http.reconcile(cx, self.input()).await
        }

        async fn plan(&self, cx: &StepCx, (): &()) -> PlanResult<HttpAnswer> {
            self.http.plan(cx, &self.input()).await
        }
    }

    pub(super) struct Calling {
        pub(super) url: String,
        pub(super) http: HttpCall,
    }

    impl Calling {
        fn input(&self) -> HttpInput {
            serde_json::from_value(json!({ "method": "POST", "url": self.url, "json": {} }))
                .unwrap()
        }
    }

    impl Idempotent for Calling {
        const NAME: &'static str = HttpCall::NAME;
        type Input = ();
        type Output = HttpAnswer;

        async fn run(&self, cx: &IdempotentCx, (): ()) -> ActionResult<HttpAnswer> {
            self.http.run(cx, self.input()).await
        }

        async fn plan(&self, cx: &StepCx, (): &()) -> PlanResult<HttpAnswer> {
            self.http.plan(cx, &self.input()).await
        }
    }
}
