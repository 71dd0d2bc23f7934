//! Checking an expression against what is visible where it stands.

use std::ops::Range;

use surefoot_kernel_core::Micros;
use surefoot_kernel_core::expr::{Binary, Expr, Function, Unary};

use super::place::Place;
use super::{BindingUse, Compiler};
use crate::check::shape::{Found, Kinds, Shape};
use crate::check::types;
use crate::diagnostic::{Finding, Path, split_advice};
use crate::expression::{Fault, Tree, TreeKind, parse};

/// One expression in its scalar.
struct Site<'s> {
    place: &'s Place<'s>,
    /// Where the expression's own text begins in the scalar's text.
    offset: usize,
    path: &'s Path<'s>,
}

impl<'a> Compiler<'a> {
    /// Parses and checks what stands between `${{` and `}}` at `inner` of the scalar's text.
    pub(super) fn expression(
        &mut self,
        text: &str,
        inner: &Range<usize>,
        place: &Place<'_>,
        path: &Path<'_>,
    ) -> Option<(Expr, Shape<'a>)> {
        let site = Site { place, offset: inner.start, path };
        let whole = 0..inner.len();
        let (span, _) = place.locate(self.report.source(), &site.in_scalar(&whole));
        self.count_expression(span, path);
        match parse(text.get(inner.clone()).unwrap_or_default()) {
            Ok(tree) => {
                let before = self.report.count();
                let shape = self.infer(&tree, &site);
                (self.report.count() == before).then(|| (tree.lower(), shape))
            }
            Err(fault) => {
                self.fault(&fault, &site);
                None
            }
        }
    }

    fn fault(&mut self, fault: &Fault, site: &Site<'_>) {
        let found = self.at(fault.code, site, &fault.range, fault.message.clone());
        add_help(found, fault.help.as_deref());
    }

    /// A finding at a range of an expression.
    fn at(
        &mut self,
        code: &'static str,
        site: &Site<'_>,
        range: &Range<usize>,
        message: String,
    ) -> &mut Finding {
        let source = self.report.source();
        let (span, excerpt) = site.place.locate(source, &site.in_scalar(range));
        self.report.error(code, span, site.path, message).maybe_help(excerpt)
    }

    fn infer(&mut self, tree: &Tree, site: &Site<'_>) -> Shape<'a> {
        match &tree.kind {
            TreeKind::Literal(value) => Shape::Kinds(Kinds::of(value)),
            TreeKind::Name(name) => self.infer_name(name, tree, site),
            TreeKind::Member { of, name, name_range } => {
                self.infer_member(of, name, name_range, tree, site)
            }
            TreeKind::Index { of, .. } => {
                let list = self.infer(of, site);
                self.expect(Kinds::LIST, list.kinds(), of, site, "an index needs");
                list.item()
            }
            TreeKind::Unary(operator, of) => {
                let (wanted, sign) = match operator {
                    Unary::Not => (Kinds::BOOL, "`!` needs"),
                    Unary::Negate => (Kinds::NUMBER, "`-` needs"),
                };
                let kinds = self.infer(of, site).kinds();
                self.expect(wanted, kinds, of, site, sign);
                Shape::Kinds(wanted)
            }
            TreeKind::Binary(operator, left, right) => {
                self.infer_binary(*operator, left, right, site)
            }
            TreeKind::Call(function, arguments) => self.infer_call(*function, arguments, site),
        }
    }

    fn infer_name(&mut self, name: &str, tree: &Tree, site: &Site<'_>) -> Shape<'a> {
        if let Some(shape) = self.root_shape(name) {
            return shape;
        }
        if name == "bindings" && self.trigger.is_none() {
            let message = "`bindings` is used as `bindings.<kind>.<name>`".to_owned();
            self.at("BINDING_INCOMPLETE", site, &tree.range, message);
            return Shape::ANY;
        }
        self.unknown_name(name, &tree.range, site);
        Shape::ANY
    }

    /// The shape of a name that stands for a value as a whole.
    fn root_shape(&self, name: &str) -> Option<Shape<'a>> {
        if let Some(trigger) = &self.trigger {
            return (name == "trigger").then(|| trigger.clone());
        }
        match name {
            "inputs" => Some(Shape::Members(self.input_shapes.clone())),
            "context" => Some(Shape::ANY),
            "run" => {
                let id = ("id".to_owned(), Shape::Kinds(Kinds::TEXT));
                Some(Shape::Members([id].into_iter().collect()))
            }
            saved => self.scope.get(saved).cloned(),
        }
    }

    fn unknown_name(&mut self, name: &str, range: &Range<usize>, site: &Site<'_>) {
        let in_trigger = self.trigger.is_some();
        if in_trigger {
            let message = format!("`{name}` does not exist here");
            let found = self.at("UNKNOWN_NAME", site, range, message);
            add_help(found, Some("a trigger's `with` sees `trigger.*` and `now()` only"));
            return;
        }
        let ended = self.scope.ended_at(name);
        let help = self.name_help(name, ended.is_some());
        let message = format!("nothing here is called `{name}`");
        let found = self.at("UNKNOWN_NAME", site, range, message);
        add_help(found, help.as_deref());
        if let Some(span) = ended {
            found.related(span, "bound here, in a scope that has ended");
        }
    }

    fn name_help(&mut self, name: &str, ended: bool) -> Option<String> {
        if ended {
            let help = "a name is visible in its own branch or iteration only; `saveAs` on the `if`, `switch` or \
                        `forEach` keeps the value";
            return Some(help.to_owned());
        }
        if name == "trigger" {
            let help = "bind what you need to an input in the trigger's `with`, and use `inputs`";
            return Some(help.to_owned());
        }
        if self.input_shapes.contains_key(name) {
            return Some(format!("did you mean `inputs.{name}`?"));
        }
        let visible: Vec<String> = self.scope.names().map(str::to_owned).collect();
        let roots = ["inputs", "context", "bindings", "run"];
        let names = visible.iter().map(String::as_str).chain(roots);
        self.report.suggest(name, names)
    }

    fn infer_member(
        &mut self,
        of: &Tree,
        name: &str,
        name_range: &Range<usize>,
        tree: &Tree,
        site: &Site<'_>,
    ) -> Shape<'a> {
        if self.trigger.is_none() {
            if let Some(kind) = binding_kind(of) {
                self.use_binding(kind, name, &tree.range, site);
                return Shape::Kinds(Kinds::TEXT);
            }
            if matches!(&of.kind, TreeKind::Name(root) if root == "bindings") {
                let message = format!("`bindings.{name}` is a kind; a name is missing after it");
                self.at("BINDING_INCOMPLETE", site, &tree.range, message);
                return Shape::ANY;
            }
        }
        let shape = self.infer(of, site);
        if !self.expect(Kinds::OBJECT, shape.kinds(), of, site, "a member needs") {
            return Shape::ANY;
        }
        match shape.member(name) {
            Found::Yes(member) => member,
            // An event may say more than its trigger declares; authors rely on what is declared.
            Found::Maybe if self.trigger.is_none() || shape.is_open() => Shape::ANY,
            Found::Maybe | Found::Never => {
                let help = self.report.suggest(name, shape.member_names());
                let message = format!("there is no member `{name}` here");
                let found = self.at("UNKNOWN_MEMBER", site, name_range, message);
                add_help(found, help.as_deref());
                Shape::ANY
            }
        }
    }

    fn use_binding(&mut self, kind: &str, name: &str, range: &Range<usize>, site: &Site<'_>) {
        let (span, _) = site.place.locate(self.report.source(), &site.in_scalar(range));
        let path = || site.path.to_string();
        let key = (kind.to_owned(), name.to_owned());
        self.bindings.entry(key).or_insert_with(|| BindingUse { span, path: path() });
    }

    fn infer_binary(
        &mut self,
        operator: Binary,
        left: &Tree,
        right: &Tree,
        site: &Site<'_>,
    ) -> Shape<'a> {
        let (one, two) = (self.infer(left, site), self.infer(right, site));
        let (one, two) = (one.kinds(), two.kinds());
        let wanted = types::operands(operator);
        let any = wanted.iter().fold(Kinds::NONE, |kinds, more| kinds.or(*more));
        let needs = format!("`{}` needs", types::sign(operator));
        let fits = self.expect(any, one, left, site, &needs);
        let fits = self.expect(any, two, right, site, &needs) && fits;
        let agree = wanted.iter().any(|kinds| kinds.overlaps(one) && kinds.overlaps(two));
        // What is known to be nothing at all was reported inside.
        if fits && !agree && one != Kinds::NONE && two != Kinds::NONE {
            let sign = types::sign(operator);
            let message =
                format!("`{sign}` needs two numbers or two texts; here are {one} and {two}");
            let range = left.range.start..right.range.end;
            let found = self.at("WRONG_TYPE", site, &range, message);
            add_help(found, Some("use `string(x)` or `number(x)` to convert one of them"));
        }
        Shape::Kinds(match types::result(operator, one, two) {
            Kinds::NONE => Kinds::ANY,
            kinds => kinds,
        })
    }

    fn infer_call(&mut self, function: Function, arguments: &[Tree], site: &Site<'_>) -> Shape<'a> {
        if let (Function::Has, Some(name)) = (function, arguments.first().and_then(input_of)) {
            self.looked_for.insert(name.to_owned());
        }
        let (wanted, result) = types::signature(function);
        let needs = format!("`{}` needs", function.name());
        for (argument, wanted) in arguments.iter().zip(wanted) {
            let kinds = self.infer(argument, site).kinds();
            self.expect(*wanted, kinds, argument, site, &needs);
        }
        if let (Function::Plus, Some(span)) = (function, arguments.get(1)) {
            self.check_span(span, site);
        }
        Shape::Kinds(result)
    }

    /// A duration that is written out can be checked now.
    fn check_span(&mut self, argument: &Tree, site: &Site<'_>) {
        let TreeKind::Literal(serde_json::Value::String(text)) = &argument.kind else { return };
        if let Err(error) = text.parse::<Micros>() {
            let error = error.to_string();
            let (message, help) = split_advice(&error);
            let found = self.at("DURATION", site, &argument.range, message.to_owned());
            add_help(found, help);
        }
    }

    /// Reports a value that can never be of a wanted kind.
    fn expect(
        &mut self,
        wanted: Kinds,
        kinds: Kinds,
        tree: &Tree,
        site: &Site<'_>,
        needs: &str,
    ) -> bool {
        let fits = wanted.overlaps(kinds) || kinds == Kinds::NONE;
        if !fits {
            let message = format!("{needs} {wanted}; this is {kinds}");
            self.at("WRONG_TYPE", site, &tree.range, message);
        }
        fits
    }
}

impl Site<'_> {
    fn in_scalar(&self, range: &Range<usize>) -> Range<usize> {
        range.start + self.offset..range.end + self.offset
    }
}

/// `note` of `inputs.note` and of `inputs.note.text`.
fn input_of(tree: &Tree) -> Option<&str> {
    match &tree.kind {
        TreeKind::Member { of, name, .. } => {
            let is_input = matches!(&of.kind, TreeKind::Name(root) if root == "inputs");
            if is_input { Some(name) } else { input_of(of) }
        }
        TreeKind::Index { of, .. } => input_of(of),
        TreeKind::Literal(_)
        | TreeKind::Name(_)
        | TreeKind::Unary(..)
        | TreeKind::Binary(..)
        | TreeKind::Call(..) => None,
    }
}

/// `table` of `bindings.table`.
fn binding_kind(of: &Tree) -> Option<&str> {
    match &of.kind {
        TreeKind::Member { of: root, name, .. } => {
            matches!(&root.kind, TreeKind::Name(root) if root == "bindings")
                .then_some(name.as_str())
        }
        TreeKind::Literal(_)
        | TreeKind::Name(_)
        | TreeKind::Index { .. }
        | TreeKind::Unary(..)
        | TreeKind::Binary(..)
        | TreeKind::Call(..) => None,
    }
}

/// Puts a cure before the excerpt that may stand there already.
fn add_help(found: &mut Finding, help: Option<&str>) {
    let Some(help) = help else { return };
    let excerpt = found.help.take();
    found.help = Some(excerpt.map_or_else(|| help.to_owned(), |rest| format!("{help}\n{rest}")));
}
