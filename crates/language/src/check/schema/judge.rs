//! Which of a validator's errors are true whatever the expressions yield, and how they read.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use super::probe::{Located, Probe};
use crate::check::shape::{Kinds, named_properties};
use crate::compile::quoting;
use crate::diagnostic::closest;
use crate::source::Span;

/// Errors of one config that are looked at.
const MAX_ERRORS: usize = 200;
/// Values of an `enum` that a message lists.
const MAX_LISTED: usize = 12;

/// Something that no run could ever make right.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) span: Span,
    /// Below the config.
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The one value that would fit: the tag of a variant.
    constant: Option<Value>,
    /// The kinds that would fit.
    wanted: Option<Kinds>,
}

impl Problem {
    /// How much a problem speaks against the variant of a union at `depth` that has it. Whoever wrote another tag
    /// means another variant; a member that is there and wrong says less than one that is missing.
    fn distance(&self, depth: usize) -> u32 {
        let is_own = self.path.len() == depth;
        if self.constant.is_some() {
            40
        } else if is_own && self.wanted.is_some() {
            20
        } else if is_own {
            6
        } else if self.code == UNKNOWN {
            5
        } else {
            3
        }
    }
}

/// Everything that is wrong with a config, whatever its expressions yield. `key` is where the config hangs.
pub(crate) fn problems(
    validator: &Validator,
    schema: &Value,
    probe: &Probe<'_>,
    key: Span,
) -> Vec<Problem> {
    let value = probe.value();
    let judge = Judge { probe, schema, key };
    let errors: Vec<_> = validator.iter_errors(&value).take(MAX_ERRORS).collect();
    judge.all(&errors)
}

struct Judge<'j, 'n> {
    probe: &'j Probe<'n>,
    schema: &'j Value,
    key: Span,
}

/// Where an error is, in terms of the config.
struct Site<'n> {
    path: Vec<String>,
    at: Located<'n>,
}

impl Judge<'_, '_> {
    fn all(&self, errors: &[ValidationError<'_>]) -> Vec<Problem> {
        let mut problems: Vec<Problem> = errors.iter().flat_map(|error| self.one(error)).collect();
        self.drop_echoes(&mut problems);
        problems
    }

    /// A property that some variant knows is called unexpected as soon as anything else in its object is wrong,
    /// or not known yet: then it says nothing new.
    fn drop_echoes(&self, problems: &mut Vec<Problem>) {
        let others: Vec<Vec<String>> = problems
            .iter()
            .filter(|problem| problem.code != UNKNOWN)
            .map(|problem| problem.path.clone())
            .collect();
        problems.retain(|problem| {
            let Some((name, object)) = problem.path.split_last() else { return true };
            if problem.code != UNKNOWN
                || !named_properties(self.schema, object).contains(&name.as_str())
            {
                return true;
            }
            let disturbed = others.iter().any(|path| path.starts_with(object));
            let at = self.probe.locate(object.iter().map(String::as_str));
            !disturbed && !self.probe.has_slot(at.node)
        });
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the validator's kinds are foreign and grow"
    )]
    fn one(&self, error: &ValidationError<'_>) -> Vec<Problem> {
        let site = self.site(error);
        if let Some(kinds) = self.probe.slot(site.at.node) {
            return self.at_slot(error, &site, kinds);
        }
        let undecided = self.probe.has_slot(site.at.node);
        match error.kind() {
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                self.closest_variant(context, &site)
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected
                .iter()
                .take(MAX_ERRORS)
                .map(|name| self.unexpected(name, &site))
                .collect(),
            ValidationErrorKind::Required { property } => vec![self.missing(property, &site)],
            ValidationErrorKind::Type { kind } => vec![self.wrong_type(allowed(kind), &site)],
            ValidationErrorKind::FalseSchema if site.at.entry.is_some() => {
                let mut object = site;
                let name = object.path.pop().unwrap_or_default();
                object.at = self.probe.locate(object.path.iter().map(String::as_str));
                vec![self.unexpected(&name, &object)]
            }
            kind if undecided && depends_on_values(kind) => Vec::new(),
            _ if undecided && is_conditional(error) => Vec::new(),
            kind => vec![self.other(kind, error, &site)],
        }
    }

    fn site(&self, error: &ValidationError<'_>) -> Site<'_> {
        let pointer = error.instance_path().as_str();
        let unescaped = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
        let path: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
        let at = self.probe.locate(path.iter().map(String::as_str));
        Site { path, at }
    }

    /// The value of an expression is not known; its kinds may be.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the validator's kinds are foreign and grow"
    )]
    fn at_slot(&self, error: &ValidationError<'_>, site: &Site<'_>, kinds: Kinds) -> Vec<Problem> {
        match error.kind() {
            ValidationErrorKind::Type { kind } if !allowed(kind).overlaps(kinds) => {
                let message =
                    format!("{} is wanted here; the expression gives {kinds}", allowed(kind));
                vec![self.problem("CONFIG_TYPE", site, message)]
            }
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                let variants: Vec<Vec<Problem>> =
                    context.iter().map(|errors| self.all(errors)).collect();
                if variants.iter().any(Vec::is_empty) {
                    return Vec::new();
                }
                let message = format!("no variant of what is wanted here is {kinds}");
                vec![self.problem("CONFIG_TYPE", site, message)]
            }
            _ => Vec::new(),
        }
    }

    fn closest_variant(
        &self,
        context: &[Vec<ValidationError<'static>>],
        site: &Site<'_>,
    ) -> Vec<Problem> {
        let variants: Vec<Vec<Problem>> = context.iter().map(|errors| self.all(errors)).collect();
        if let Some(tag) = wrong_tag(&variants) {
            return vec![tag];
        }
        let depth = site.path.len();
        let own_kind = |problems: &Vec<Problem>| {
            problems.iter().find(|it| it.path.len() == depth).and_then(|problem| problem.wanted)
        };
        let kinds: Option<Vec<Kinds>> = variants.iter().map(own_kind).collect();
        if let Some(kinds) = kinds.filter(|kinds| !kinds.is_empty()) {
            let wanted = kinds.into_iter().fold(Kinds::NONE, Kinds::or);
            return vec![self.wrong_type(wanted, site)];
        }
        let distance = |problems: &Vec<Problem>| -> u32 {
            problems.iter().map(|it| it.distance(depth)).fold(0, u32::saturating_add)
        };
        variants.into_iter().min_by_key(distance).unwrap_or_default()
    }

    fn problem(&self, code: &'static str, site: &Site<'_>, message: impl Into<String>) -> Problem {
        let span = if site.path.is_empty() { self.key } else { site.at.node.span };
        let (path, message) = (site.path.clone(), message.into());
        Problem { code, span, path, message, help: None, constant: None, wanted: None }
    }

    fn unexpected(&self, name: &str, site: &Site<'_>) -> Problem {
        let mut problem = self.problem(UNKNOWN, site, format!("unknown key `{name}`"));
        let entry = site.at.node.as_map().and_then(|map| map.iter().find(|it| it.key == name));
        if let Some(entry) = entry {
            problem.span = entry.key_span;
        }
        problem.path.push(name.to_owned());
        let known = named_properties(self.schema, &site.path);
        let present = site.at.node.as_map().unwrap_or_default();
        let absent = known.into_iter().filter(|known| present.iter().all(|it| it.key != *known));
        problem.help = closest(name, absent).map(|found| format!("did you mean `{found}`?"));
        problem
    }

    fn missing(&self, property: &Value, site: &Site<'_>) -> Problem {
        let name = property.as_str().unwrap_or_default();
        let message = format!("the key `{name}` is missing");
        let mut problem = self.problem("CONFIG_MISSING_KEY", site, message);
        problem.help = Some(format!("add `{name}:`"));
        problem.span = match (site.path.is_empty(), site.at.entry) {
            (true, _) => self.key,
            (false, Some(entry)) => entry.key_span,
            (false, None) => site.at.node.span,
        };
        problem
    }

    fn wrong_type(&self, wanted: Kinds, site: &Site<'_>) -> Problem {
        let node = site.at.node;
        let number = node.as_scalar().filter(|scalar| scalar.value.is_number());
        let message = match number.filter(|_| wanted.overlaps(Kinds::NUMBER)) {
            // A number is refused as such only where a whole one is wanted.
            Some(scalar) => {
                let rest = wanted.without(Kinds::NUMBER);
                let or = if rest == Kinds::NONE { String::new() } else { format!(" or {rest}") };
                format!("a whole number{or} is wanted here; {} is none", scalar.text)
            }
            None => format!("{wanted} is wanted here; this is {}", node.describe()),
        };
        let mut problem = self.problem("CONFIG_TYPE", site, message);
        problem.wanted = Some(wanted);
        if wanted.overlaps(Kinds::TEXT) {
            problem.help = quoting(node);
        } else if let Some(scalar) = node.as_scalar().filter(|scalar| scalar.value.is_string()) {
            let reads = |kinds: Kinds| wanted.overlaps(kinds);
            let is_number = reads(Kinds::NUMBER) && scalar.text.parse::<f64>().is_ok();
            let is_bool = reads(Kinds::BOOL) && matches!(scalar.text.as_str(), "true" | "false");
            if is_number || is_bool {
                problem.help = Some(format!("write it without quotes: {}", scalar.text));
            }
        }
        problem
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the validator's kinds are foreign and grow"
    )]
    fn other(
        &self,
        kind: &ValidationErrorKind,
        error: &ValidationError<'_>,
        site: &Site<'_>,
    ) -> Problem {
        let (message, help) = match kind {
            ValidationErrorKind::Enum { options } => {
                let (list, help) = listed(options, site);
                (format!("one of {list} is wanted here"), help)
            }
            ValidationErrorKind::Constant { expected_value } => {
                (format!("`{}` is wanted here", plain(expected_value)), None)
            }
            _ => (error.masked_with("this value").to_string(), None),
        };
        let mut problem = self.problem("CONFIG_VALUE", site, message);
        problem.help = help;
        if let ValidationErrorKind::Constant { expected_value } = kind {
            problem.constant = Some((**expected_value).clone());
        }
        problem
    }
}

/// If every variant wants another value at the same place, that place is what is wrong.
fn wrong_tag(variants: &[Vec<Problem>]) -> Option<Problem> {
    let tag = |problems: &[Problem]| problems.iter().position(|it| it.constant.is_some());
    let first = variants.first()?;
    let first = &first[tag(first)?];
    let mut wanted = Vec::new();
    for problems in variants {
        let found = &problems[tag(problems)?];
        if found.path != first.path {
            return None;
        }
        wanted.extend(found.constant.clone());
    }
    let (list, more) = list(&wanted);
    Some(Problem {
        code: first.code,
        span: first.span,
        path: first.path.clone(),
        message: format!("one of {list}{more} is wanted here"),
        help: None,
        constant: None,
        wanted: None,
    })
}

const UNKNOWN: &str = "CONFIG_UNKNOWN_KEY";

fn listed(options: &Value, site: &Site<'_>) -> (String, Option<String>) {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let (shown, more) = list(options);
    let text = site.at.node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
    let help = closest(text, options.iter().filter_map(Value::as_str));
    let help = help.map(|found| format!("did you mean `{found}`?"));
    (format!("{shown}{more}"), help)
}

fn list(options: &[Value]) -> (String, &'static str) {
    let shown: Vec<String> =
        options.iter().take(MAX_LISTED).map(|option| format!("`{}`", plain(option))).collect();
    let more = if options.len() > MAX_LISTED { ", …" } else { "" };
    (shown.join(", "), more)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether an error about a list or object may vanish with the values inside it.
const fn depends_on_values(kind: &ValidationErrorKind) -> bool {
    matches!(
        kind,
        ValidationErrorKind::Enum { .. }
            | ValidationErrorKind::Constant { .. }
            | ValidationErrorKind::Not { .. }
            | ValidationErrorKind::Contains
            | ValidationErrorKind::UniqueItems
            | ValidationErrorKind::OneOfMultipleValid { .. }
            | ValidationErrorKind::UnevaluatedItems { .. }
    )
}

/// Whether an error only holds because a condition of the schema holds.
fn is_conditional(error: &ValidationError<'_>) -> bool {
    let path = error.evaluation_path().as_str();
    ["/then", "/else", "/dependentSchemas"].iter().any(|keyword| path.contains(keyword))
}

fn allowed(kind: &TypeKind) -> Kinds {
    match kind {
        TypeKind::Single(one) => kinds_of(*one),
        TypeKind::Multiple(set) => {
            set.iter().fold(Kinds::NONE, |kinds, one| kinds.or(kinds_of(one)))
        }
    }
}

const fn kinds_of(json: JsonType) -> Kinds {
    match json {
        JsonType::Null => Kinds::NULL,
        JsonType::Boolean => Kinds::BOOL,
        JsonType::Integer | JsonType::Number => Kinds::NUMBER,
        JsonType::String => Kinds::TEXT,
        JsonType::Array => Kinds::LIST,
        JsonType::Object => Kinds::OBJECT,
    }
}
