//! What a module or an action asks of the store, as types.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use surefoot_kernel_core::Fence;

use crate::erased::{DynAmbiguous, DynIdempotent, FreeObject, Object, SharedFence};

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// Marks what runs on every store. Never constructed.
#[derive(Debug)]
pub enum AnyStore {}

/// Marks what runs only on a store whose transactions are `Tx`. Never constructed.
#[derive(Debug)]
pub struct On<Tx>(Infallible, PhantomData<fn() -> Tx>);

/// What a module or an action asks of the store. Sealed: [`AnyStore`] or [`On<Tx>`](On).
pub trait Binding: Sealed + Sized + 'static {
    #[doc(hidden)]
    type Fence: Clone + Send + Sync + 'static;
    #[doc(hidden)]
    type Object: From<FreeObject> + Clone + Send + Sync + 'static;
    #[doc(hidden)]
    fn idempotent(action: Arc<dyn DynIdempotent<Self::Fence>>) -> Self::Object;
    #[doc(hidden)]
    fn ambiguous(action: Arc<dyn DynAmbiguous<Self::Fence>>) -> Self::Object;
}

impl Sealed for AnyStore {}
impl<Tx> Sealed for On<Tx> {}

impl Binding for AnyStore {
    type Fence = ();
    type Object = FreeObject;

    fn idempotent(action: Arc<dyn DynIdempotent<()>>) -> FreeObject {
        FreeObject::Idempotent(action)
    }

    fn ambiguous(action: Arc<dyn DynAmbiguous<()>>) -> FreeObject {
        FreeObject::Ambiguous(action)
    }
}

impl<Tx: Send + 'static> Binding for On<Tx> {
    type Fence = SharedFence<Tx>;
    type Object = Object<Tx>;

    fn idempotent(action: Arc<dyn DynIdempotent<SharedFence<Tx>>>) -> Object<Tx> {
        Object::Idempotent(action)
    }

    fn ambiguous(action: Arc<dyn DynAmbiguous<SharedFence<Tx>>>) -> Object<Tx> {
        Object::Ambiguous(action)
    }
}

/// Which actions may join which module. Sealed.
#[diagnostic::on_unimplemented(
    message = "this module is already tied to the transactions of another store",
    label = "this action needs `{B}`, the module is `{Self}`",
    note = "one module runs on one store: split the actions over two modules, or write this action for the module's transaction type"
)]
pub trait Join<B: Binding>: Binding {
    /// What the module is tied to afterwards.
    type Joined: Binding;
    #[doc(hidden)]
    fn carry(old: Self::Object) -> <Self::Joined as Binding>::Object;
    #[doc(hidden)]
    fn bring(new: B::Object) -> <Self::Joined as Binding>::Object;
}

impl Join<AnyStore> for AnyStore {
    type Joined = AnyStore;

    fn carry(old: FreeObject) -> FreeObject {
        old
    }

    fn bring(new: FreeObject) -> FreeObject {
        new
    }
}

impl<Tx: Send + 'static> Join<On<Tx>> for AnyStore {
    type Joined = On<Tx>;

    fn carry(old: FreeObject) -> Object<Tx> {
        old.into()
    }

    fn bring(new: Object<Tx>) -> Object<Tx> {
        new
    }
}

impl<Tx: Send + 'static> Join<AnyStore> for On<Tx> {
    type Joined = On<Tx>;

    fn carry(old: Object<Tx>) -> Object<Tx> {
        old
    }

    fn bring(new: FreeObject) -> Object<Tx> {
        new.into()
    }
}

impl<Tx: Send + 'static> Join<On<Tx>> for On<Tx> {
    type Joined = On<Tx>;

    fn carry(old: Object<Tx>) -> Object<Tx> {
        old
    }

    fn bring(new: Object<Tx>) -> Object<Tx> {
        new
    }
}

/// Which modules a store can run. Sealed.
#[diagnostic::on_unimplemented(
    message = "this module cannot run on this store",
    label = "the module needs `{Self}`, the store's transactions are `{Tx}`",
    note = "an action of the module was written for another store: change the store in its `impl`, or give the worker the store the module was written for"
)]
pub trait RunsOn<Tx>: Binding {
    #[doc(hidden)]
    fn on(object: &Self::Object) -> Object<Tx>;
}

impl<Tx: Send + 'static> RunsOn<Tx> for AnyStore {
    fn on(object: &FreeObject) -> Object<Tx> {
        object.clone().into()
    }
}

impl<Tx: Send + 'static> RunsOn<Tx> for On<Tx> {
    fn on(object: &Object<Tx>) -> Object<Tx> {
        object.clone()
    }
}

/// Which actions have a fence. Sealed.
#[diagnostic::on_unimplemented(
    message = "this action names no store, so it has no transaction to fence",
    label = "the context is for `{Self}`",
    note = "name the store: `impl Idempotent<On<SqliteTx>> for ..` with `&IdempotentCx<On<SqliteTx>>` (or `On<PgTx>`; the same for `Ambiguous`)"
)]
pub trait Fenced: Binding {
    /// What statements run on inside a transaction of the store.
    type Tx: Send + 'static;
    #[doc(hidden)]
    fn fence(fence: &Self::Fence) -> &dyn Fence<Self::Tx>;
}

impl<Tx: Send + 'static> Fenced for On<Tx> {
    type Tx = Tx;

    fn fence(fence: &SharedFence<Tx>) -> &dyn Fence<Tx> {
        &**fence
    }
}
