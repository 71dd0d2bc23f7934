//! The primitives.

use std::sync::Arc;
use std::time::Duration;

use surefoot::coordinate::{JobEnd, ProcessOptions, process_jobs};
use surefoot::nats::Nats;
use surefoot::sync::{
    Coordinator as _, Job, Jobs, Key, Mutex, MutexSettings, ResourceId, WorkSettings,
};
use tokio::task::JoinSet;

use crate::Failed;
use crate::raw::BODY;

pub(crate) async fn jobs(nats: &Nats) -> Result<Arc<dyn Jobs>, Failed> {
    Ok(nats.jobs(WorkSettings::new(ResourceId::new("load")?)).await?)
}

pub(crate) async fn mutex(nats: &Nats) -> Result<Arc<dyn Mutex>, Failed> {
    Ok(nats.mutex(MutexSettings::new(ResourceId::new("locks")?)).await?)
}

pub(crate) async fn submit(
    jobs: &Arc<dyn Jobs>,
    count: usize,
    at_once: usize,
) -> Result<(), Failed> {
    let mut tasks = JoinSet::new();
    for task in 0..at_once {
        let jobs = jobs.clone();
        tasks.spawn(async move {
            for number in (task..count).step_by(at_once) {
                jobs.submit(Job::new(Key::new(format!("job {number}"))?, &BODY)?).await?;
            }
            Ok::<(), Failed>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

pub(crate) async fn process(
    jobs: &Arc<dyn Jobs>,
    count: usize,
    at_once: usize,
) -> Result<(), Failed> {
    let options = ProcessOptions::new(at_once)?;
    let mut processing = process_jobs(jobs.clone(), options, async |_| Ok(JobEnd::Done));
    let wanted = u64::try_from(count)?;
    while processing.counts().done < wanted {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    processing.stop();
    tokio::spawn(async move { processing.drain().await });
    Ok(())
}

pub(crate) async fn lock(mutex: &Arc<dyn Mutex>, count: usize) -> Result<(), Failed> {
    for number in 0..count {
        let key = Key::new(format!("door {}", number % 10))?;
        let lock = mutex.try_acquire(&key).await?.ok_or("the lock is taken")?;
        if !mutex.release(&lock).await? {
            return Err("the lock was gone".into());
        }
    }
    Ok(())
}
