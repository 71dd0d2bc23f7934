//! Every action, driven through repeats, crashes and duplicates: does it honour its class?

use serde_json::json;
use surefoot_actions::http::{HttpCall, HttpRequest};
use surefoot_testkit::certify;

use crate::server::{Server, client};

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
