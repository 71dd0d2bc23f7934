//! Declarations: repeatable, and never a change of what is there.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::time::Duration;

use surefoot_sync_core::{
    Coordinator as _, MutexSettings, Partitions, QueueSettings, SyncError, WorkSettings,
};

use super::{CoordinationFactory, id, key, one, quick, stored, submit};

/// Any process declares what it uses, as often as it likes.
pub async fn a_declaration_is_repeatable<F: CoordinationFactory>(place: &F) {
    let (first, second) = (place.handle().await, place.handle().await);
    let jobs = first.jobs(quick("mail")).await.unwrap();
    submit(&jobs, "a").await;
    first.jobs(quick("mail")).await.unwrap();
    let other = second.jobs(quick("mail")).await.unwrap();
    assert_eq!(one(&*other).await.key, Some(key("a")));
}

/// Covers behaviour 212.
/// Covers field fault 153.
pub async fn other_settings_are_refused_and_change_nothing<F: CoordinationFactory>(place: &F) {
    let (first, second) = (place.handle().await, place.handle().await);
    let jobs = first.jobs(quick("mail")).await.unwrap();
    submit(&jobs, "a").await;
    let changes: [fn(&mut WorkSettings); 4] = [
        |it| it.ack_wait = Duration::from_secs(7),
        |it| it.retention = Duration::from_secs(86_400),
        |it| it.held_max = 3,
        |it| it.attempts_max = 9,
    ];
    for change in changes {
        let mut other = quick("mail");
        change(&mut other);
        let error = first.jobs(other.clone()).await.err().unwrap();
        assert!(matches!(error, SyncError::ConflictingDeclaration { .. }), "{error}");
        let error = second.jobs(other).await.err().unwrap();
        assert!(matches!(error, SyncError::ResourceDrift { .. }), "{error}");
    }
    // The first one goes on.
    assert_eq!(one(&*jobs).await.key, Some(key("a")));
    let again = second.jobs(quick("mail")).await.unwrap();
    assert_eq!(again.depth().await.unwrap().held, 1);
    second.queue(QueueSettings::new(quick("mail"))).await.unwrap();
    let ordered = QueueSettings::ordered(quick("mail"), Partitions::new(2).unwrap());
    let error = place.handle().await.queue(ordered).await.err().unwrap();
    assert!(matches!(error, SyncError::ResourceDrift { .. }), "{error}");
}

/// What is refused leaves the id free.
pub async fn settings_that_make_no_sense_create_nothing<F: CoordinationFactory>(place: &F) {
    let coordinator = place.handle().await;
    let wrong = WorkSettings { attempts_max: 0, ..quick("mail") };
    let error = coordinator.jobs(wrong).await.err().unwrap();
    assert!(matches!(error, SyncError::InvalidOption { .. }), "{error}");
    coordinator.jobs(quick("mail")).await.unwrap();
}

/// Jobs, a queue and locks of one id are three resources.
pub async fn resources_with_one_id_do_not_clash<F: CoordinationFactory>(place: &F) {
    let coordinator = place.handle().await;
    let jobs = coordinator.jobs(quick("a")).await.unwrap();
    let queue = coordinator.queue(QueueSettings::new(quick("a"))).await.unwrap();
    coordinator.mutex(MutexSettings::new(id("a"))).await.unwrap();
    // Ids that would be the same name once what is odd in them is taken out.
    let odd = coordinator.jobs(quick("a/b")).await.unwrap();
    let other = coordinator.jobs(quick("a.b")).await.unwrap();
    assert!(stored(&submit(&jobs, "k").await).is_some());
    assert!(stored(&submit(&odd, "k").await).is_some());
    assert!(stored(&submit(&other, "k").await).is_some());
    assert_eq!(queue.depth().await.unwrap().waiting, 0);
    assert_eq!(jobs.depth().await.unwrap().waiting, 1);
}
