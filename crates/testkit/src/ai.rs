//! A model that says what a test wants it to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use surefoot_actions::ai::{AiAnswer, AiError, AiProvider, AiRequest, AiUsage};
use surefoot_kernel_core::{BoxFuture, EffectKey};

/// What it says.
#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    /// These words.
    Text(String),
    /// This value, as JSON.
    Json(Value),
    /// Nothing, because the line broke.
    Transport(String),
    /// No.
    Refused(String),
    /// Nothing, for ever.
    Hang,
}

type Script = dyn Fn(&AiRequest, u32) -> Say + Send + Sync;

/// Answers as a function says, and remembers what it was asked. Clones are the same one.
///
/// ```
/// use surefoot_testkit::{Say, ScriptedProvider};
/// let provider = ScriptedProvider::new(|request, attempt| match attempt {
///     1 => Say::Transport("busy".to_owned()),
///     _ => Say::Text(request.messages[0].content.to_uppercase()),
/// });
/// assert_eq!((provider.asked(), provider.broken_off()), (0, 0));
/// ```
#[derive(Clone)]
pub struct ScriptedProvider {
    script: Arc<Script>,
    asked: Arc<Mutex<BTreeMap<EffectKey, u32>>>,
    open: Arc<AtomicU64>,
    broken_off: Arc<AtomicU64>,
}

impl ScriptedProvider {
    /// With what it says to a request that it is asked for the nth time, from 1.
    pub fn new(script: impl Fn(&AiRequest, u32) -> Say + Send + Sync + 'static) -> Self {
        Self {
            script: Arc::new(script),
            asked: Arc::default(),
            open: Arc::default(),
            broken_off: Arc::default(),
        }
    }

    /// How often it was asked.
    #[must_use]
    pub fn asked(&self) -> u32 {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Calls that have not come to an end.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::SeqCst)
    }

    /// Calls that were broken off by whoever asked.
    #[must_use]
    pub fn broken_off(&self) -> u64 {
        self.broken_off.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for ScriptedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedProvider").field("asked", &self.asked()).finish_non_exhaustive()
    }
}

/// One call; dropped before its end, it was broken off.
struct Call<'p> {
    provider: &'p ScriptedProvider,
    is_over: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.provider.open.fetch_sub(1, Ordering::SeqCst);
        if !self.is_over {
            self.provider.broken_off.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl AiProvider for ScriptedProvider {
    fn ask<'a>(
        &'a self,
        request: &'a AiRequest,
        key: &'a EffectKey,
    ) -> BoxFuture<'a, Result<AiAnswer, AiError>> {
        Box::pin(async move {
            self.open.fetch_add(1, Ordering::SeqCst);
            let mut call = Call { provider: self, is_over: false };
            let nth = {
                let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                let nth = asked.entry(key.clone()).or_default();
                *nth += 1;
                *nth
            };
            let answered = |text: String| AiAnswer {
                usage: AiUsage { input_tokens: 1, output_tokens: text.len() as u64 },
                text,
                model: request.model.clone(),
            };
            let said = match (self.script)(request, nth) {
                Say::Text(text) => Ok(answered(text)),
                Say::Json(value) => Ok(answered(value.to_string())),
                Say::Transport(message) => Err(AiError::transport(message)),
                Say::Refused(message) => Err(AiError::refused(message)),
                Say::Hang => std::future::pending().await,
            };
            call.is_over = true;
            said
        })
    }
}
