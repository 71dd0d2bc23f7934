//! What it costs to look for work: claims, and passes of recovery.

use std::time::{Duration, Instant};

use serde_json::json;
use surefoot::prelude::*;
use surefoot_kernel_core::{ClaimRequest, Mode, Plans, Scan};

use crate::load::APP;
use crate::measure::{mark, millis};
use crate::{Args, Failed};

/// Claims, of so many runs each: together less than the smallest backlog.
const CLAIMS: usize = 200;
const AT_ONCE: u32 = 4;
/// Passes of recovery.
const PASSES: usize = 50;
const LEASE: Micros = Micros::from_secs(600);

/// Measures claims and passes on what is in the store; `template` is a run like those that can be claimed.
pub(crate) async fn run<S: TxStore>(
    engine: &str,
    args: &Args,
    store: &S,
    template: RunId,
) -> Result<String, Failed> {
    let load = LoadRequest { run: template, after: Some(0) };
    let found = store.run_load(load).await?.ok_or("the first run is gone")?;
    let footprint = found.run.origin.footprint.clone();
    mark("start");
    let (claims, claimed) = claims(store, footprint).await?;
    let passes = passes(store).await?;
    mark("end");
    let wanted = CLAIMS.min(args.queued.div_ceil(AT_ONCE as usize)) * AT_ONCE as usize;
    if claimed < wanted.min(args.queued) {
        return Err(format!("only {claimed} runs were claimed").into());
    }
    Ok(json!({
        "engine": engine,
        "queued": args.queued,
        "foreign": args.foreign,
        "stored": args.stored,
        "steps_in_all": claimed,
        "p50_ms": millis(&claims, 50),
        "p99_ms": millis(&claims, 99),
        "recover_p50_ms": millis(&passes, 50),
        "recover_p99_ms": millis(&passes, 99),
    })
    .to_string())
}

async fn claims<S: TxStore>(
    store: &S,
    footprint: String,
) -> Result<(Vec<Duration>, usize), Failed> {
    let (mut took, mut claimed) = (Vec::with_capacity(CLAIMS), 0);
    for nonce in 1..=CLAIMS as u64 {
        let request = ClaimRequest {
            app: App::from(APP),
            mode: Mode::Execute,
            footprints: vec![footprint.clone()],
            limit: AT_ONCE,
            session: SessionId::from_bytes([7; 16]),
            nonce,
            lease: LEASE,
            tree: None,
            plans: Plans::default(),
        };
        let began = Instant::now();
        claimed += store.run_claim(request).await?.len();
        took.push(began.elapsed());
    }
    took.sort_unstable();
    Ok((took, claimed))
}

async fn passes<S: TxStore>(store: &S) -> Result<Vec<Duration>, Failed> {
    let mut took = Vec::with_capacity(PASSES);
    for _ in 0..PASSES {
        let began = Instant::now();
        store.run_recover(Scan { app: App::from(APP), limit: 500 }).await?;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    Ok(took)
}
