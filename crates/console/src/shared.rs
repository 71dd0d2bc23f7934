//! What every handler has at hand.

use std::sync::Arc;

use surefoot_kernel_core::{Clock, Ids};
use surefoot_operator::Operator;

use crate::live::Live;
use crate::request::Rooms;
use crate::trouble::Troubles;
use crate::{Access, Identity};

/// State of the router. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

struct Inner {
    operator: Operator,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    access: Access,
    live: Live,
    rooms: Rooms,
    troubles: Troubles,
}

impl Shared {
    pub(crate) fn new(
        operator: Operator,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        access: Access,
        live: Live,
    ) -> Self {
        let (rooms, troubles) = (Rooms::default(), Troubles::default());
        Self(Arc::new(Inner { operator, ids, clock, access, live, rooms, troubles }))
    }

    /// The use cases in somebody's name.
    pub(crate) fn operator_for(&self, identity: &Identity) -> Operator {
        self.0.operator.acting_as(identity.actor())
    }

    pub(crate) fn ids(&self) -> &dyn Ids {
        &*self.0.ids
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(crate) fn rooms(&self) -> &Rooms {
        &self.0.rooms
    }

    pub(crate) fn troubles(&self) -> &Troubles {
        &self.0.troubles
    }

    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }
}
