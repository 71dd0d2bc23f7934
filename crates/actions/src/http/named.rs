//! Which secrets a workflow names, before any of it runs.

use std::collections::BTreeSet;

use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::{Plan, StepKind};
use surefoot_language::{Ambiguous, Idempotent};

use super::body::collect;
use super::{HttpCall, HttpRequest};

/// The secrets that the HTTP steps of a plan name as they are written. One whose name is an expression is not among them.
#[must_use]
pub fn secrets_named(plan: &Plan) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for step in plan.all_steps() {
        if let StepKind::Action { action, config, .. } = &step.kind
            && (action == HttpRequest::NAME || action == HttpCall::NAME)
        {
            look(config, &mut names);
        }
    }
    names
}

fn look(template: &Template, names: &mut BTreeSet<String>) {
    match template {
        Template::Literal(value) => {
            let mut found = Vec::new();
            collect(value, &mut found);
            names.extend(found.into_iter().map(|it| it.secret));
        }
        Template::List(items) => items.iter().for_each(|item| look(item, names)),
        Template::Object(members) => {
            // `{ secret: NAME, prefix: "${{ ... }}" }`
            let is_reference = members.iter().all(|(key, _)| key == "secret" || key == "prefix");
            for (key, value) in members {
                if let Template::Literal(name) = value
                    && is_reference
                    && key == "secret"
                {
                    names.extend(name.as_str().map(str::to_owned));
                } else {
                    look(value, names);
                }
            }
        }
        Template::Expr(_) | Template::Text(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use surefoot_language::{Bindings, Module, compile_and_bind};

    use super::super::HttpClient;
    use super::*;

    #[test]
    fn every_secret_that_is_written_is_found() {
        let client = HttpClient::builder().build().unwrap();
        let module = Module::builder("shop", 1)
            .ambiguous(HttpRequest::new(client.clone()))
            .idempotent(HttpCall::new(client))
            .build()
            .unwrap();
        let source = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpRequest:
      method: POST
      url: "${{ inputs.base }}/a"
      headers: { Authorization: { secret: A, prefix: "${{ inputs.base }}" }, X: plain }
      query: { key: { secret: B } }
      json: { deep: [{ token: { secret: C } }], base: "${{ inputs.base }}" }
      confirm: { url: "${{ inputs.base }}", headers: { Authorization: { secret: D } } }
    catch:
      - if: "${{ true }}"
        then:
          - httpCall: { url: https://a.example, headers: { Authorization: { secret: E } } }
      - httpCall: { url: https://a.example, headers: { Authorization: { secret: "${{ inputs.base }}" } } }
"#;
        let plan = compile_and_bind(source, module.manifest(), &Bindings::new());
        let plan = plan.unwrap_or_else(|findings| panic!("{findings}"));
        let named: Vec<String> = secrets_named(&plan).into_iter().collect();
        assert_eq!(named, ["A", "B", "C", "D", "E"]);
    }
}
