use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use surefoot_kernel_core::{BoxFuture, Code, Fence, FenceError, RunId};

use super::*;
use crate::answer::{
    Access, AmbiguousResult, AmbiguousStopParts, Cost, PlanResult, ReconcileResult, Reconciled,
    Stop, StopParts,
};
use crate::context::{AmbiguousCx, Detached, PureCx, StepCx, StepData, TransactionalCx};
use crate::erased::{HookError, OnTx, SharedFence};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    item: String,
    boxes: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("the shelf is locked")]
struct Locked;

/// Stands for a connection inside a transaction.
#[derive(Default)]
struct Shelf {
    boxes: i64,
    held: u32,
}

/// Stands for a connection of another store.
#[derive(Default)]
struct OtherShelf;

struct AlwaysHeld;

impl Fence<Shelf> for AlwaysHeld {
    fn hold<'a>(&'a self, tx: &'a mut Shelf) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async {
            tx.held += 1;
            Ok(())
        })
    }
}

impl Fence<OtherShelf> for AlwaysHeld {
    fn hold<'a>(&'a self, _: &'a mut OtherShelf) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async { Ok(()) })
    }
}

struct Price;
impl Pure for Price {
    const NAME: &'static str = "price";
    const ABOUT: &'static str = "What an order costs";
    const HEAVY: bool = true;
    type Input = Order;
    type Output = i64;
    fn run(&self, _: &PureCx, order: Order) -> ActionResult<i64> {
        Ok(order.boxes * 250)
    }
    fn retry(&self) -> RetryPolicy {
        RetryPolicy { attempts: 2, ..RetryPolicy::default() }
    }
}

struct Book;
impl Transactional<Shelf> for Book {
    const NAME: &'static str = "book";
    type Input = Order;
    type Output = i64;
    async fn run(&self, cx: &mut TransactionalCx<'_, Shelf>, order: Order) -> ActionResult<i64> {
        cx.heartbeat().await?;
        cx.tx().boxes += order.boxes;
        if cx.tx().boxes > 100 {
            Err(Locked)?;
        }
        Ok(cx.tx().boxes)
    }
    async fn plan(&self, _: &StepCx, order: &Order) -> PlanResult<i64> {
        Ok(Planned::new(format!("Book {}", order.item)).output(order.boxes))
    }
    async fn authorize(&self, cx: &StepCx, order: &Order) -> ActionResult<Access> {
        let is_ann = cx.actor::<String>().as_deref() == Some("ann");
        Ok(Access::allowed_if(is_ann || order.boxes < 10, "only Ann orders that much"))
    }
    fn cost(&self, order: &Order) -> Cost {
        Cost::of("boxes", order.boxes as f64)
    }
}

struct Archive;
impl Idempotent<On<Shelf>> for Archive {
    const NAME: &'static str = "archive";
    type Input = Order;
    type Output = u32;
    async fn run(&self, cx: &IdempotentCx<On<Shelf>>, _: Order) -> ActionResult<u32> {
        let mut own = Shelf::default();
        cx.heartbeat_in(&mut own).await?;
        Ok(own.held)
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<u32> {
        Ok(Planned::new("Archive"))
    }
}

struct Mail;
impl Idempotent for Mail {
    const NAME: &'static str = "mail";
    type Input = Order;
    type Output = String;
    async fn run(&self, cx: &IdempotentCx, order: Order) -> ActionResult<String> {
        Ok(format!("{} {}", order.item, cx.attempt()))
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<String> {
        Ok(Planned::new("Mail"))
    }
}

struct Pay;
impl Ambiguous for Pay {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: Duration = Duration::from_secs(1_200);
    type Input = Order;
    type Output = String;
    async fn run(&self, _: &AmbiguousCx, order: Order) -> AmbiguousResult<String> {
        if order.boxes > 1 {
            Err(Locked)?;
        }
        Ok("receipt".to_owned())
    }
    async fn reconcile(&self, cx: &AmbiguousCx, _: Order) -> ReconcileResult<String> {
        Ok(Reconciled::Succeeded(cx.effect_key().to_string()))
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<String> {
        Ok(Planned::new("Pay").issue("the card expires"))
    }
}

struct PayFenced;
impl Ambiguous<On<Shelf>> for PayFenced {
    const NAME: &'static str = "payFenced";
    const GUARDED: bool = false;
    type Input = Order;
    type Output = u32;
    async fn run(&self, cx: &AmbiguousCx<On<Shelf>>, _: Order) -> AmbiguousResult<u32> {
        let mut own = Shelf::default();
        cx.heartbeat_in(&mut own).await?;
        Ok(own.held)
    }
    async fn reconcile(&self, _: &AmbiguousCx<On<Shelf>>, _: Order) -> ReconcileResult<u32> {
        Ok(Reconciled::NotFound)
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<u32> {
        Ok(Planned::new("Pay"))
    }
    async fn authorize(&self, _: &StepCx, _: &Order) -> ActionResult<Access> {
        panic!("it is not guarded")
    }
    fn cost(&self, _: &Order) -> Cost {
        panic!("it is not guarded")
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct StockLow {
    item: String,
}
impl Trigger for StockLow {
    const KIND: &'static str = "stockLow";
    const EVENT: &'static str = "inventory.stockLow";
}

async fn greet(_: IdempotentCx, order: Order) -> ActionResult<String> {
    Ok(order.item)
}

fn inventory() -> Module<On<Shelf>> {
    Module::builder("inventory", 3)
        .limits(Limits::default().loop_items(500))
        .trigger::<StockLow>()
        .classify(|_: &Locked| Classified::retry("SHELF_LOCKED"))
        .pure(Price)
        .pure_fn("boxesFor", |order: Order| Ok((order.boxes + 11) / 12))
        .ambiguous(Pay)
        .transactional(Book)
        .idempotent(Archive)
        .idempotent(Mail)
        .ambiguous(PayFenced)
        .idempotent_fn("greet", |_: &Order| Planned::new("Greet"), greet)
        .idempotent_fn(
            "wave",
            |order: &Order| Planned::new(format!("Wave at {}", order.item)),
            async |cx, order: Order| Ok(format!("{} {}", order.item, cx.attempt())),
        )
        .build()
        .unwrap()
}

fn free() -> Module {
    Module::builder("inventory", 3).pure(Price).idempotent(Mail).ambiguous(Pay).build().unwrap()
}

fn cx() -> StepCx {
    StepCx::new(StepData::detached(RunId::from_bytes([7; 16]), "steps.0"))
}

fn order(boxes: i64) -> Value {
    json!({"item": "bolt", "boxes": boxes})
}

fn fence() -> SharedFence<Shelf> {
    Arc::new(AlwaysHeld)
}

fn object(name: &str) -> Object<Shelf> {
    inventory().action(name).unwrap().object().clone()
}

async fn run(name: &str, input: Value) -> Result<Value, HookError> {
    let cx = cx();
    match object(name) {
        Object::Pure(action) => action.run(&cx, &input),
        Object::Transactional(action) => {
            let on = OnTx { tx: &mut Shelf::default(), children: &Detached };
            action.run(&cx, on, &input).await
        }
        Object::Idempotent(action) => action.run(&cx, fence(), &input).await,
        Object::Ambiguous(_) => panic!("{name} has answers of its own"),
    }
}

#[tokio::test]
async fn every_class_and_form_runs_as_an_object() {
    for (name, expected) in [
        ("price", json!(750)),
        ("boxesFor", json!(1)),
        ("book", json!(3)),
        ("archive", json!(1)),
        ("mail", json!("bolt 1")),
        ("greet", json!("bolt")),
        ("wave", json!("bolt 1")),
    ] {
        assert_eq!(run(name, order(3)).await.unwrap(), expected, "{name}");
    }
    let (Object::Ambiguous(pay), Object::Ambiguous(fenced)) = (object("pay"), object("payFenced"))
    else {
        panic!("they are ambiguous");
    };
    assert_eq!(pay.run(&cx(), fence(), &order(1)).await.unwrap(), json!("receipt"));
    assert_eq!(fenced.run(&cx(), fence(), &order(1)).await.unwrap(), json!(1));
    let key = AmbiguousCx::unfenced(cx()).effect_key().to_string();
    assert_eq!(
        pay.reconcile(&cx(), fence(), &order(1)).await.unwrap(),
        Reconciled::Succeeded(json!(key))
    );
    assert_eq!(fenced.reconcile(&cx(), fence(), &order(1)).await.unwrap(), Reconciled::NotFound);
}

#[tokio::test]
async fn the_other_hooks_are_reached_too() {
    let (step, small, large) = (cx(), order(3), order(30));
    let book = object("book");
    let hooks = book.effect().unwrap();
    assert_eq!(hooks.authorize(&step, &small).await.unwrap(), Access::Allowed);
    let denied = Access::denied("only Ann orders that much");
    assert_eq!(hooks.authorize(&step, &large).await.unwrap(), denied);
    assert_eq!(hooks.cost(&small).unwrap(), Cost::of("boxes", 3));
    let planned = hooks.plan(&step, &small).await.unwrap();
    assert_eq!(planned, Planned::new("Book bolt").output(json!(3)));

    for name in ["archive", "mail", "pay", "payFenced", "greet", "wave"] {
        let object = object(name);
        let hooks = object.effect().unwrap();
        assert_eq!(hooks.authorize(&step, &small).await.unwrap(), Access::Allowed, "{name}");
        assert!(hooks.cost(&small).unwrap().is_none(), "{name}");
        assert!(!hooks.plan(&step, &small).await.unwrap().summary().is_empty(), "{name}");
    }
    assert!(object("price").effect().is_none());
    let Object::Pure(price) = object("price") else { panic!("it is pure") };
    assert!(price.is_heavy());
}

#[tokio::test]
async fn an_action_that_is_not_guarded_is_asked_for_nothing_but_its_input_is_read() {
    let (step, bad) = (cx(), json!({"item": 7}));
    for (name, is_guarded) in [("pay", true), ("payFenced", false)] {
        let Object::Ambiguous(action) = object(name) else { panic!("it is ambiguous") };
        assert_eq!(action.is_guarded(), is_guarded, "{name}");
        assert_eq!(action.authorize(&step, &order(30)).await.unwrap(), Access::Allowed, "{name}");
        assert!(action.cost(&order(30)).unwrap().is_none(), "{name}");
        assert!(matches!(action.authorize(&step, &bad).await, Err(HookError::Input(_))), "{name}");
        assert!(action.cost(&bad).is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_config_that_does_not_fit_calls_no_hook() {
    let (step, bad) = (cx(), json!({"item": 7}));
    for name in ["price", "boxesFor", "book", "archive", "mail", "greet", "wave"] {
        let refused = run(name, bad.clone()).await.unwrap_err();
        let HookError::Input(error) = refused else { panic!("{name}: {refused:?}") };
        assert_eq!(error.code(), Code::CONFIG_INVALID);
        let Some(object) = Some(object(name)).filter(|it| it.effect().is_some()) else { continue };
        let hooks = object.effect().unwrap();
        assert!(matches!(hooks.authorize(&step, &bad).await, Err(HookError::Input(_))), "{name}");
        assert!(hooks.cost(&bad).is_err(), "{name}");
        assert!(matches!(hooks.plan(&step, &bad).await, Err(HookError::Input(_))), "{name}");
    }
    let Object::Ambiguous(pay) = object("pay") else { panic!("it is ambiguous") };
    assert!(matches!(pay.run(&step, fence(), &bad).await, Err(HookError::Input(_))));
    assert!(matches!(pay.reconcile(&step, fence(), &bad).await, Err(HookError::Input(_))));
}

#[tokio::test]
async fn stops_are_classified_by_the_module() {
    let module = inventory();
    let HookError::Stopped(stop) = run("book", order(101)).await.unwrap_err() else {
        panic!("the action stopped")
    };
    let StopParts::Failed { code, retryable, source, .. } = stop.into_parts(module.classifiers())
    else {
        panic!("it failed")
    };
    assert_eq!((code.as_str(), retryable), ("SHELF_LOCKED", true));
    assert!(source.unwrap().is::<Locked>());

    let Object::Ambiguous(pay) = object("pay") else { panic!("it is ambiguous") };
    let stopped = pay.run(&cx(), fence(), &order(2)).await.unwrap_err();
    let HookError::Stopped(stop) = stopped else { panic!("the action stopped") };
    let AmbiguousStopParts::MayHaveHappened { code, .. } = stop.into_parts(module.classifiers())
    else {
        panic!("nobody knows")
    };
    assert_eq!(code, Some(Code::from("SHELF_LOCKED")));
}

#[test]
fn an_output_that_is_no_json_is_told_apart() {
    let module = Module::builder("m", 1)
        .pure_fn("odd", |_: Order| Ok(BTreeMap::from([((1, 2), 3)])))
        .build()
        .unwrap();
    let action = module.action::<Shelf>("odd").unwrap();
    let Object::Pure(odd) = action.object() else { panic!("it is pure") };
    let Err(HookError::Output(error)) = odd.run(&cx(), &order(1)) else { panic!("no such JSON") };
    assert_eq!(error.code(), Code::OUTPUT_INVALID);
}

#[test]
fn configs_and_outputs_are_judged_by_schema() {
    let module = inventory();
    let book = module.action("book").unwrap();
    assert!(book.validate_input(&order(3)).is_ok());
    let found = book.validate_input(&json!({"item": 1, "boxs": 2})).unwrap_err();
    let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "`/boxes` is missing",
            "`/boxs` is not a known field",
            "`/item` must be a string, not a number",
        ]
    );
    assert!(book.validate_output(&json!(3)).is_ok());
    assert!(book.validate_output(&json!("3")).is_err());
}

#[test]
fn the_manifest_says_what_was_registered() {
    let module = inventory();
    let manifest = module.manifest();
    assert_eq!((module.id(), module.version(), manifest.limits.loop_items), ("inventory", 3, 500));
    let price = manifest.action("price").unwrap();
    assert_eq!((price.about.as_str(), price.retry.attempts), ("What an order costs", 2));
    assert_eq!(manifest.action("pay").unwrap().settle_after, Some(Micros::from_secs(1_200)));
    assert_eq!(manifest.action("payFenced").unwrap().settle_after, Some(Micros::from_secs(600)));
    assert_eq!(manifest.action("book").unwrap().settle_after, None);
    assert_eq!(manifest.trigger("stockLow").unwrap().event, "inventory.stockLow");
    for decl in &manifest.actions {
        let action = module.action(&decl.name).unwrap();
        assert_eq!(action.class(), action.object().class());
        assert_eq!(action.decl(), decl);
    }
    assert!(module.action("unknown").is_none());
    assert_eq!(*module.footprint(), manifest.footprint());
    assert_eq!(Manifest::from_json(&manifest.to_json()).unwrap().hash(), manifest.hash());
    assert_eq!(StockLow { item: "bolt".into() }.event().kind(), "inventory.stockLow");
}

#[test]
fn a_module_without_a_store_loads_for_any() {
    let module = free();
    let loaded: Vec<Box<dyn Loaded<Shelf>>> = vec![Box::new(module.clone()), Box::new(inventory())];
    for each in &loaded {
        assert!(each.action("mail").is_some());
        assert!(free().footprint().is_contained_in(each.footprint()));
        assert_eq!(each.manifest().id, "inventory");
        assert!(each.classifiers().classify(&fmt::Error).is_none());
    }
    let other: Box<dyn Loaded<OtherShelf>> = Box::new(module);
    assert!(other.action("pay").is_some());
}

#[tokio::test]
async fn a_free_action_runs_beside_the_fence_of_any_store() {
    let action = free().action::<OtherShelf>("mail").unwrap();
    let Object::Idempotent(mail) = action.object() else { panic!("it is idempotent") };
    let (step, input) = (cx(), order(1));
    let fence: SharedFence<OtherShelf> = Arc::new(AlwaysHeld);
    assert_eq!(mail.run(&step, fence, &input).await.unwrap(), json!("bolt 1"));
}

#[test]
fn modules_can_be_held_anywhere() {
    fn send_sync_static<T: Send + Sync + 'static>() {}
    send_sync_static::<Module>();
    send_sync_static::<Module<On<Shelf>>>();
    send_sync_static::<Action<Shelf>>();
    send_sync_static::<Box<dyn Loaded<Shelf>>>();
}

/// A hand-written schema that only a network could complete.
struct Remote;

impl JsonSchema for Remote {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Remote".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"$ref": "https://example.com/order.json"})
    }

    fn inline_schema() -> bool {
        true
    }
}

impl<'de> Deserialize<'de> for Remote {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

#[test]
fn every_finding_is_reported_at_once() {
    let error = Module::builder("inventory", 0)
        .pure_fn("switch", |_: Order| Ok(1))
        .pure_fn("twice", |_: Order| Ok(1))
        .pure_fn("twice", |_: Order| Ok(2))
        .pure_fn("remote", |_: Remote| Ok(1))
        .pure_fn("bare", |_: String| Ok(1))
        .build()
        .unwrap_err();
    let codes: Vec<_> = error.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(
        codes,
        [
            "MANIFEST_VERSION_ZERO",
            "MANIFEST_NAME_RESERVED",
            "MANIFEST_NAME_DUPLICATE",
            "MODULE_SCHEMA_UNUSABLE",
            "MODULE_INPUT_NO_OBJECT",
        ]
    );
    assert_eq!(error.to_string().lines().count(), 6, "{error}");
}

#[test]
fn a_stop_of_a_plain_function_keeps_its_code() {
    let module = Module::builder("m", 1)
        .pure_fn("sold", |order: Order| match order.boxes {
            0 => Err(Stop::fail("SOLD_OUT", "none left")),
            boxes => Ok(boxes),
        })
        .build()
        .unwrap();
    let action = module.action::<Shelf>("sold").unwrap();
    let Object::Pure(sold) = action.object() else { panic!("it is pure") };
    let Err(HookError::Stopped(stop)) = sold.run(&cx(), &order(0)) else { panic!("it stops") };
    assert_eq!(stop.code().as_str(), "SOLD_OUT");
}
