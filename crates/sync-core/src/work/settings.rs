//! How a resource with work is declared.

use std::time::Duration;

use crate::{Backoff, ResourceId, SyncError};

/// The settings of jobs or of a queue. They are kept by the server; a declaration with others is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkSettings {
    /// Which resource.
    pub id: ResourceId,
    /// How long a delivery is held without a heartbeat. 30 s.
    pub ack_wait: Duration,
    /// Attempts, the first included. 5.
    pub attempts_max: u32,
    /// Waits between attempts. 1 s, 5 s, 30 s, 120 s.
    pub backoff: Backoff,
    /// For how long a key that was sent is recognised. 120 s.
    pub dedupe_window: Duration,
    /// Largest data with its envelope, in bytes. 128 KiB.
    pub payload_max_bytes: usize,
    /// How long work is kept that nobody does. 7 days.
    pub retention: Duration,
    /// How much is kept, in bytes. 1 GiB.
    pub stored_max_bytes: u64,
    /// How much may be held at once, by all workers together. 256.
    pub held_max: u32,
}

/// Work whose time comes in the last hour of its retention could be removed before.
const RETENTION_MARGIN: Duration = Duration::from_secs(3600);

impl WorkSettings {
    /// The defaults.
    #[must_use]
    pub fn new(id: ResourceId) -> Self {
        Self {
            id,
            ack_wait: Duration::from_secs(30),
            attempts_max: 5,
            backoff: Backoff::default(),
            dedupe_window: Duration::from_secs(120),
            payload_max_bytes: 128 * 1024,
            retention: Duration::from_secs(7 * 86_400),
            stored_max_bytes: 1 << 30,
            held_max: 256,
        }
    }

    /// Checks all settings; adapters do so before they create anything.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for the first that cannot be.
    pub fn check(&self) -> Result<(), SyncError> {
        let bad = |option, why: &str| Err(SyncError::InvalidOption { option, why: why.to_owned() });
        let within = |span: Duration, least_ms, most: Duration| {
            (Duration::from_millis(least_ms)..=most).contains(&span)
        };
        let (hour, year) = (Duration::from_secs(3600), Duration::from_secs(366 * 86_400));
        if !within(self.ack_wait, 100, 24 * hour) {
            return bad("ack_wait", "it is from 100 ms to a day");
        }
        if !(1..=1_000).contains(&self.attempts_max) {
            return bad("attempts_max", "it is from 1 to 1000");
        }
        if !within(self.retention, 7_200_000, year) {
            return bad("retention", "it is from 2 hours to a year");
        }
        if !within(self.dedupe_window, 100, self.retention) {
            return bad("dedupe_window", "it is from 100 ms to the retention");
        }
        if !(1_024..=32 << 20).contains(&self.payload_max_bytes) {
            return bad("payload_max_bytes", "it is from 1 KiB to 32 MiB");
        }
        if self.stored_max_bytes < 1 << 16 || i64::try_from(self.stored_max_bytes).is_err() {
            return bad("stored_max_bytes", "it is at least 64 KiB");
        }
        if !(1..=100_000).contains(&self.held_max) {
            return bad("held_max", "it is from 1 to 100000");
        }
        self.check_delay(self.backoff.after(self.attempts_max))
    }

    /// Checks that something can wait so long here.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if it would be removed before its time comes.
    pub fn check_delay(&self, delay: Duration) -> Result<(), SyncError> {
        let most = self.retention.saturating_sub(RETENTION_MARGIN);
        if delay <= most {
            return Ok(());
        }
        let why = format!("{delay:?} is over {most:?}, the retention less an hour");
        Err(SyncError::InvalidOption { option: "delay", why })
    }

    /// Checks a size.
    ///
    /// # Errors
    /// [`SyncError::PayloadTooLarge`].
    pub fn check_size(&self, bytes: usize) -> Result<(), SyncError> {
        let limit_bytes = self.payload_max_bytes;
        if bytes <= limit_bytes {
            return Ok(());
        }
        Err(SyncError::PayloadTooLarge { bytes, limit_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> WorkSettings {
        WorkSettings::new(ResourceId::new("mail").unwrap())
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        assert!(settings().check().is_ok());
        type Spoil = fn(&mut WorkSettings);
        let refused: [(&str, Spoil); 7] = [
            ("ack_wait", |it| it.ack_wait = Duration::ZERO),
            ("attempts_max", |it| it.attempts_max = 0),
            ("retention", |it| it.retention = Duration::from_secs(60)),
            ("dedupe_window", |it| it.dedupe_window = Duration::from_secs(8 * 86_400)),
            ("payload_max_bytes", |it| it.payload_max_bytes = 0),
            ("stored_max_bytes", |it| it.stored_max_bytes = u64::MAX),
            ("held_max", |it| it.held_max = 0),
        ];
        for (option, spoil) in refused {
            let mut settings = settings();
            spoil(&mut settings);
            let error = settings.check().unwrap_err();
            assert!(matches!(error, SyncError::InvalidOption { option: it, .. } if it == option));
        }
    }

    #[test]
    fn what_would_be_removed_before_its_time_is_refused() {
        let day = Duration::from_secs(86_400);
        assert!(settings().check_delay(6 * day).is_ok());
        assert!(settings().check_delay(7 * day).is_err());
        assert!(settings().check_delay(Duration::MAX).is_err());
        let mut waits = settings();
        waits.backoff = Backoff::new(vec![30 * day]);
        assert!(waits.check().is_err());
    }
}
