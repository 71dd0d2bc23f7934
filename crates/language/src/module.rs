//! The declaration of an application: what authors may use, and the code behind it.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;
use surefoot_kernel_core::plan::{Footprint, RetryPolicy};
use surefoot_kernel_core::{EffectClass, Micros};

use crate::action::{
    ActionInput, ActionOutput, Ambiguous, Idempotent, Pure, Transactional, Trigger,
};
use crate::answer::{ActionResult, Classified, Classifiers, Planned};
use crate::binding::{AnyStore, Binding, Join, On, RunsOn};
use crate::context::IdempotentCx;
use crate::erased::{
    AmbiguousObject, DynEffect, DynPure, FreeObject, IdempotentFn, IdempotentObject, Object,
    PureFn, PureObject, TransactionalObject,
};
use crate::manifest::{ActionDecl, Limits, Manifest, ManifestFinding, TriggerDecl};
use crate::schema::{CompiledSchema, SchemaFinding, event_schema, input_schema, output_schema};

/// Everything that is wrong with a module, at once.
#[derive(Debug, thiserror::Error)]
#[error("module `{module}` cannot be built:{}", listed(.findings))]
#[non_exhaustive]
pub struct ModuleError {
    /// Its id.
    pub module: String,
    /// Never empty.
    pub findings: Vec<ManifestFinding>,
}

fn listed(findings: &[ManifestFinding]) -> String {
    findings.iter().map(|finding| format!("\n- {finding}")).collect()
}

/// The declaration of an application: what authors may use, and the code behind it. Cheap to clone.
///
/// Without a store in its type it runs on any. The first action that names a store ties it.
///
/// ```
/// use surefoot_language::{Module, Planned};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order { item: String, boxes: i64 }
///
/// # fn main() -> Result<(), surefoot_language::ModuleError> {
/// let inventory = Module::builder("inventory", 1)
///     .pure_fn("price", |order: Order| Ok(order.boxes * 250))
///     .idempotent_fn(
///         "mail",
///         |order: &Order| Planned::new(format!("Order {} boxes of {}", order.boxes, order.item)),
///         async |cx, order: Order| Ok(format!("{} under {}", order.item, cx.effect_key())),
///     )
///     .build()?;
/// assert_eq!(inventory.manifest().actions.len(), 2);
/// # Ok(()) }
/// ```
pub struct Module<B: Binding = AnyStore> {
    inner: Arc<Inner<B::Object>>,
}

struct Inner<O> {
    manifest: Manifest,
    footprint: Footprint,
    classifiers: Classifiers,
    actions: BTreeMap<String, (Arc<Described>, O)>,
}

/// What a worker needs of an action besides its hooks.
struct Described {
    decl: ActionDecl,
    input: CompiledSchema,
    output: CompiledSchema,
}

impl Module {
    /// Starts a module. The version counts from 1 and is raised by whoever changes what authors may use.
    pub fn builder(id: impl Into<String>, version: u32) -> ModuleBuilder {
        ModuleBuilder {
            id: id.into(),
            version,
            limits: Limits::default(),
            triggers: Vec::new(),
            actions: Vec::new(),
            classifiers: Classifiers::default(),
        }
    }
}

impl<B: Binding> Module<B> {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.manifest.id
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.inner.manifest.version
    }

    /// What it offers to authors, without any code.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// What it offers to plans: a worker runs those whose own footprint is contained in it.
    #[must_use]
    pub fn footprint(&self) -> &Footprint {
        &self.inner.footprint
    }

    /// What it says about the errors of its application.
    #[must_use]
    pub fn classifiers(&self) -> &Classifiers {
        &self.inner.classifiers
    }

    /// An action by its name, for a store whose transactions are `Tx`.
    #[must_use]
    pub fn action<Tx>(&self, name: &str) -> Option<Action<Tx>>
    where
        B: RunsOn<Tx>,
    {
        let (described, object) = self.inner.actions.get(name)?;
        Some(Action { described: described.clone(), object: B::on(object) })
    }
}

impl<B: Binding> Clone for Module<B> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<B: Binding> fmt::Debug for Module<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("id", &self.id())
            .field("version", &self.version())
            .field("actions", &self.inner.actions.keys())
            .finish_non_exhaustive()
    }
}

/// A module as a worker holds it, whatever binding it was written with: `Box<dyn Loaded<Tx>>` is made of every
/// [`Module`] that [`RunsOn`] transactions of type `Tx`.
pub trait Loaded<Tx>: Send + Sync {
    /// What it offers to authors.
    fn manifest(&self) -> &Manifest;
    /// What it offers to plans.
    fn footprint(&self) -> &Footprint;
    /// What it says about the errors of its application.
    fn classifiers(&self) -> &Classifiers;
    /// An action by its name.
    fn action(&self, name: &str) -> Option<Action<Tx>>;
}

impl<Tx, B: RunsOn<Tx>> Loaded<Tx> for Module<B> {
    fn manifest(&self) -> &Manifest {
        Self::manifest(self)
    }

    fn footprint(&self) -> &Footprint {
        Self::footprint(self)
    }

    fn classifiers(&self) -> &Classifiers {
        Self::classifiers(self)
    }

    fn action(&self, name: &str) -> Option<Action<Tx>> {
        Self::action(self, name)
    }
}

/// An action as a worker holds it. Cheap to clone.
pub struct Action<Tx> {
    described: Arc<Described>,
    object: Object<Tx>,
}

impl<Tx> Action<Tx> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.described.decl.name
    }

    /// What it promises.
    #[must_use]
    pub fn class(&self) -> EffectClass {
        self.described.decl.class
    }

    /// When a failed attempt is tried again.
    #[must_use]
    pub fn retry(&self) -> &RetryPolicy {
        &self.described.decl.retry
    }

    /// How long `NotFound` of a reconcile proves nothing. Ambiguous actions only.
    #[must_use]
    pub fn settle_after(&self) -> Option<Micros> {
        self.described.decl.settle_after
    }

    /// All that the manifest says about it.
    #[must_use]
    pub fn decl(&self) -> &ActionDecl {
        &self.described.decl
    }

    /// Its hooks.
    #[must_use]
    pub fn object(&self) -> &Object<Tx> {
        &self.object
    }

    /// Judges a resolved config.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, place by place.
    pub fn validate_input(&self, config: &Value) -> Result<(), Vec<SchemaFinding>> {
        self.described.input.check(config)
    }

    /// Judges an output.
    ///
    /// # Errors
    /// `OUTPUT_INVALID`, place by place.
    pub fn validate_output(&self, output: &Value) -> Result<(), Vec<SchemaFinding>> {
        self.described.output.check(output)
    }
}

impl<Tx> Clone for Action<Tx> {
    fn clone(&self) -> Self {
        Self { described: self.described.clone(), object: self.object.clone() }
    }
}

impl<Tx> fmt::Debug for Action<Tx> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action")
            .field("name", &self.name())
            .field("class", &self.class())
            .finish_non_exhaustive()
    }
}

impl<Tx: 'static> Action<Tx> {
    /// What of it a dry run may use: nothing that has an effect.
    #[must_use]
    pub fn preview(&self) -> PreviewAction {
        let hooks = match &self.object {
            Object::Pure(action) => PreviewHooks::Pure(action.clone()),
            Object::Transactional(action) => PreviewHooks::Effect(action.clone()),
            Object::Idempotent(action) => PreviewHooks::Effect(action.clone()),
            Object::Ambiguous(action) => PreviewHooks::Effect(action.clone()),
        };
        PreviewAction { described: self.described.clone(), hooks }
    }
}

/// An action as a dry run holds it. Cheap to clone.
#[derive(Clone)]
pub struct PreviewAction {
    described: Arc<Described>,
    hooks: PreviewHooks,
}

/// The hooks that a dry run may call.
#[derive(Clone)]
pub enum PreviewHooks {
    /// All of a pure action's.
    Pure(Arc<dyn DynPure>),
    /// Authorisation, cost and preview of any other.
    Effect(Arc<dyn DynEffect>),
}

impl PreviewAction {
    /// Its hooks.
    #[must_use]
    pub fn hooks(&self) -> &PreviewHooks {
        &self.hooks
    }

    /// Judges a resolved config.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, place by place.
    pub fn validate_input(&self, config: &Value) -> Result<(), Vec<SchemaFinding>> {
        self.described.input.check(config)
    }

    /// Judges an output.
    ///
    /// # Errors
    /// `OUTPUT_INVALID`, place by place.
    pub fn validate_output(&self, output: &Value) -> Result<(), Vec<SchemaFinding>> {
        self.described.output.check(output)
    }
}

impl fmt::Debug for PreviewAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreviewAction")
            .field("name", &self.described.decl.name)
            .field("class", &self.described.decl.class)
            .finish_non_exhaustive()
    }
}

/// Collects what a module declares: one method per effect class, so that the chain reads as the list of what may
/// happen.
#[must_use = "a module builder does nothing until `build`"]
pub struct ModuleBuilder<B: Binding = AnyStore> {
    id: String,
    version: u32,
    limits: Limits,
    triggers: Vec<TriggerDecl>,
    actions: Vec<(ActionDecl, B::Object)>,
    classifiers: Classifiers,
}

impl<B: Binding> ModuleBuilder<B> {
    /// What a workflow of this module may not exceed.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A trigger that authors may write, and the event type that it listens to.
    pub fn trigger<T: Trigger>(mut self) -> Self {
        let (kind, event) = (T::KIND.to_owned(), T::EVENT.to_owned());
        self.triggers.push(TriggerDecl { kind, event, schema: event_schema::<T>() });
        self
    }

    /// Says once, for one error type of the application, which code it has and whether trying again can help. Found
    /// at any depth of an error that came by `?`; the first function that knows one decides.
    pub fn classify<E: StdError + 'static>(
        mut self,
        classify: impl Fn(&E) -> Classified + Send + Sync + 'static,
    ) -> Self {
        self.classifiers = self.classifiers.and(classify);
        self
    }

    /// A pure action.
    pub fn pure<A: Pure>(self, action: A) -> Self {
        let decl = declared::<A::Input, A::Output>(A::NAME, A::ABOUT, EffectClass::Pure);
        let decl = ActionDecl { retry: action.retry(), ..decl };
        self.add(decl, FreeObject::Pure(Arc::new(PureObject(action))).into())
    }

    /// A pure action from a plain function.
    pub fn pure_fn<I, O, F>(self, name: &'static str, run: F) -> Self
    where
        I: ActionInput,
        O: ActionOutput,
        F: Fn(I) -> ActionResult<O> + Send + Sync + 'static,
    {
        let decl = declared::<I, O>(name, "", EffectClass::Pure);
        self.add(decl, FreeObject::Pure(Arc::new(PureFn::new(run))).into())
    }

    /// A transactional action. Ties the module to its transaction type.
    pub fn transactional<A, Tx>(self, action: A) -> ModuleBuilder<<B as Join<On<Tx>>>::Joined>
    where
        A: Transactional<Tx>,
        Tx: Send + 'static,
        B: Join<On<Tx>>,
    {
        let decl = declared::<A::Input, A::Output>(A::NAME, A::ABOUT, EffectClass::Transactional);
        let decl = ActionDecl { retry: action.retry(), ..decl };
        self.join::<On<Tx>>(decl, Object::Transactional(Arc::new(TransactionalObject::new(action))))
    }

    /// An idempotent action. Ties the module if the action names a store.
    pub fn idempotent<A, C>(self, action: A) -> ModuleBuilder<<B as Join<C>>::Joined>
    where
        A: Idempotent<C>,
        C: Binding,
        B: Join<C>,
    {
        let decl = declared::<A::Input, A::Output>(A::NAME, A::ABOUT, EffectClass::Idempotent);
        let decl = ActionDecl { retry: action.retry(), ..decl };
        self.join::<C>(decl, C::idempotent(Arc::new(IdempotentObject::<A, C>::new(action))))
    }

    /// An idempotent action from its preview and an async function, which owns its context.
    pub fn idempotent_fn<I, O, P, F, Fut>(self, name: &'static str, plan: P, run: F) -> Self
    where
        I: ActionInput,
        O: ActionOutput,
        P: Fn(&I) -> Planned<O> + Send + Sync + 'static,
        F: Fn(IdempotentCx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ActionResult<O>> + Send + 'static,
    {
        let decl = declared::<I, O>(name, "", EffectClass::Idempotent);
        let object = FreeObject::Idempotent(Arc::new(IdempotentFn::new(plan, run)));
        self.add(decl, object.into())
    }

    /// An ambiguous action. Ties the module if the action names a store.
    pub fn ambiguous<A, C>(self, action: A) -> ModuleBuilder<<B as Join<C>>::Joined>
    where
        A: Ambiguous<C>,
        C: Binding,
        B: Join<C>,
    {
        let decl = declared::<A::Input, A::Output>(A::NAME, A::ABOUT, EffectClass::Ambiguous);
        let settle_after = Some(A::SETTLE_AFTER.into());
        let decl = ActionDecl { retry: action.retry(), settle_after, ..decl };
        self.join::<C>(decl, C::ambiguous(Arc::new(AmbiguousObject::<A, C>::new(action))))
    }

    /// Compiles the schemas and checks the whole.
    ///
    /// # Errors
    /// Every finding: names that are declared twice, reserved or no names, a version or limit of 0, a retry policy
    /// that makes no sense, a schema that cannot be used, an input that is no object.
    pub fn build(self) -> Result<Module<B>, ModuleError> {
        let (decls, objects): (Vec<ActionDecl>, Vec<B::Object>) = self.actions.into_iter().unzip();
        let manifest = Manifest {
            id: self.id,
            version: self.version,
            limits: self.limits,
            inputs: Vec::new(),
            triggers: self.triggers,
            actions: decls,
        };
        let mut findings = manifest.findings();
        check_triggers(&manifest, &mut findings);
        let described = manifest.actions.iter().map(|decl| describe(decl, &mut findings));
        let named = described.zip(objects).filter_map(|(described, object)| {
            let described = described?;
            Some((described.decl.name.clone(), (Arc::new(described), object)))
        });
        let actions = named.collect();
        if !findings.is_empty() {
            return Err(ModuleError { module: manifest.id, findings });
        }
        let footprint = manifest.footprint();
        let inner = Inner { manifest, footprint, classifiers: self.classifiers, actions };
        Ok(Module { inner: Arc::new(inner) })
    }

    fn add(mut self, decl: ActionDecl, object: B::Object) -> Self {
        self.actions.push((decl, object));
        self
    }

    fn join<C: Binding>(
        self,
        decl: ActionDecl,
        object: C::Object,
    ) -> ModuleBuilder<<B as Join<C>>::Joined>
    where
        B: Join<C>,
    {
        let carry = |(decl, object)| (decl, <B as Join<C>>::carry(object));
        let joined = ModuleBuilder {
            id: self.id,
            version: self.version,
            limits: self.limits,
            triggers: self.triggers,
            actions: self.actions.into_iter().map(carry).collect(),
            classifiers: self.classifiers,
        };
        joined.add(decl, <B as Join<C>>::bring(object))
    }
}

fn declared<I: ActionInput, O: ActionOutput>(
    name: &str,
    about: &str,
    class: EffectClass,
) -> ActionDecl {
    ActionDecl {
        name: name.to_owned(),
        about: about.to_owned(),
        class,
        input: input_schema::<I>(),
        output: output_schema::<O>(),
        retry: RetryPolicy::default(),
        settle_after: None,
    }
}

fn describe(decl: &ActionDecl, findings: &mut Vec<ManifestFinding>) -> Option<Described> {
    let path = format!("actions.{}", decl.name);
    if !may_be_object(&decl.input) {
        findings.push(ManifestFinding {
            code: "MODULE_INPUT_NO_OBJECT",
            path: format!("{path}.input"),
            message: format!(
                "authors write the config of `{}` as a mapping: make its input a struct with named fields",
                decl.name
            ),
        });
    }
    let input = compiled(&decl.input, format!("{path}.input"), findings);
    let output = compiled(&decl.output, format!("{path}.output"), findings);
    Some(Described { decl: decl.clone(), input: input?, output: output? })
}

fn check_triggers(manifest: &Manifest, findings: &mut Vec<ManifestFinding>) {
    for trigger in &manifest.triggers {
        compiled(&trigger.schema, format!("triggers.{}.schema", trigger.kind), findings);
    }
}

fn compiled(
    schema: &Value,
    path: String,
    findings: &mut Vec<ManifestFinding>,
) -> Option<CompiledSchema> {
    let unusable = |error: crate::schema::BadSchema| {
        findings.push(ManifestFinding {
            code: "MODULE_SCHEMA_UNUSABLE",
            path,
            message: error.to_string(),
        });
    };
    CompiledSchema::new(schema).map_err(unusable).ok()
}

/// Whether the schema's own `type` leaves room for an object. What stands behind references is not followed.
fn may_be_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == "object",
        Some(Value::Array(several)) => several.iter().any(|it| it == "object"),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
