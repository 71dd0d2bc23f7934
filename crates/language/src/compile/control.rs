//! `if`, `switch` and `forEach`.

use serde_json::Value;
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::{Case, Step, StepKind};

use super::Compiler;
use super::steps::{Nesting, Outcome, Site};
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::Path;
use crate::yaml::{Entry, Node};

impl<'a> Compiler<'a> {
    pub(super) fn if_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["then", "else", "saveAs", "label"]);
        let condition = self.condition(&site.head.value, &site.path.key("if"));
        let then = self.required_branch(site, "then");
        let otherwise = self.optional_branch(site, "else");
        let (condition, then, otherwise) = (condition?, then?, otherwise?);
        Some(Outcome {
            kind: Some(StepKind::If { condition, then, otherwise }),
            output: Shape::ANY,
        })
    }

    fn condition(
        &mut self,
        node: &Node,
        path: &Path<'_>,
    ) -> Option<surefoot_kernel_core::expr::Expr> {
        let (expr, shape) = self.single_expression(node, path, "a condition")?;
        if !shape.kinds().overlaps(Kinds::BOOL) {
            let message = format!("a condition is true or false; this is {}", shape.kinds());
            self.report
                .error("WRONG_TYPE", node.span, path, message)
                .help("compare it with something: a condition is never guessed from another value");
        }
        Some(expr)
    }

    fn required_branch(&mut self, site: &Site<'_, '_>, key: &str) -> Option<Vec<Step>> {
        let at = site.head.key_span;
        self.required(&site.fields, key, at, site.path)?;
        let entry = site.fields.get(key)?;
        self.branch(entry, &site.path.key(key), site.nesting)
    }

    /// `None` if it was reported, `Some(None)` if it is not there.
    fn optional_branch(&mut self, site: &Site<'_, '_>, key: &str) -> Option<Option<Vec<Step>>> {
        let Some(entry) = site.fields.get(key) else { return Some(None) };
        self.branch(entry, &site.path.key(key), site.nesting).map(Some)
    }

    pub(super) fn switch_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["cases", "default", "saveAs", "label"]);
        let on = self.slot(&site.head.value, &site.path.key("switch"));
        let cases = self.cases(site);
        let default = self.optional_branch(site, "default");
        let (on, cases, default) = (on?.template, cases?, default?);
        Some(Outcome { kind: Some(StepKind::Switch { on, cases, default }), output: Shape::ANY })
    }

    fn cases(&mut self, site: &Site<'_, '_>) -> Option<Vec<Case>> {
        let at = site.head.key_span;
        let node = self.required(&site.fields, "cases", at, site.path)?;
        let path = site.path.key("cases");
        let Some(nodes) = node.as_list() else {
            let message = format!("`cases` is a list; this is {}", node.describe());
            self.report
                .error("NOT_A_LIST", node.span, &path, message)
                .help("write each case as `- when: ...` with its `do:` below it");
            return None;
        };
        if nodes.is_empty() {
            let message = "`cases` has no cases";
            self.report.error("CASES_EMPTY", node.span, &path, message);
            return None;
        }
        let cases: Vec<Option<Case>> = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| self.case(node, &path.index(index), site.nesting))
            .collect();
        cases.into_iter().collect()
    }

    fn case(&mut self, node: &Node, path: &Path<'_>, nesting: Nesting) -> Option<Case> {
        let fields = self.mapping(node, path, "a case")?;
        self.refuse_unknown(&fields, &["when", "do"], path);
        let when = self.required(&fields, "when", node.span, path);
        let when = when.and_then(|when| self.slot(when, &path.key("when")));
        let body = self.required(&fields, "do", node.span, path);
        let body = body.and_then(|_| fields.get("do"));
        let steps = body.and_then(|entry| self.branch(entry, &path.key("do"), nesting));
        Some(Case { when: when?.template, steps: steps? })
    }

    pub(super) fn for_each_step(&mut self, site: &Site<'_, '_>) -> Option<Outcome<'a>> {
        self.refuse_options(site, &["as", "do", "saveAs", "label"]);
        let path = site.path.key("forEach");
        let over = self.slot(&site.head.value, &path);
        if let Some(over) = &over {
            self.check_list(&site.head.value, &over.template, over.shape.kinds(), &path);
        }
        let shape = over.as_ref().map_or(Shape::ANY, |over| over.shape.item());
        let mark = self.scope.enter();
        let at = site.head.key_span;
        let name = self.required(&site.fields, "as", at, site.path);
        let item = name.and_then(|node| {
            let path = site.path.key("as");
            self.bind_name(node, &path, "`as`", shape)
        });
        let body = self.required(&site.fields, "do", at, site.path);
        let body = body.and_then(|_| site.fields.get("do"));
        let body = body.and_then(|entry| self.iteration(entry, site));
        self.scope.leave(mark);
        let (over, item, body) = (over?.template, item?, body?);
        let output = Shape::Items(Box::new(Shape::ANY));
        Some(Outcome { kind: Some(StepKind::ForEach { over, item, body }), output })
    }

    fn iteration(&mut self, entry: &Entry, site: &Site<'_, '_>) -> Option<Vec<Step>> {
        self.loop_body(entry, &site.path.key("do"), site.nesting)
    }

    fn check_list(&mut self, node: &Node, over: &Template, kinds: Kinds, path: &Path<'_>) {
        if !kinds.overlaps(Kinds::LIST) {
            let message = format!("`forEach` goes over a list; this is {kinds}");
            self.report.error("WRONG_TYPE", node.span, path, message);
        }
        let items = match over {
            Template::Literal(Value::Array(items)) => items.len(),
            Template::List(items) => items.len(),
            Template::Literal(_) | Template::Expr(_) | Template::Text(_) | Template::Object(_) => 0,
        };
        let limit = self.limits.loop_items;
        if items > usize::try_from(limit).unwrap_or(usize::MAX) {
            let message = format!("a loop goes over at most {limit} items; here are {items}");
            self.report.error("LIMIT_LOOP_ITEMS", node.span, path, message);
        }
    }
}
