//! An explanation as plain text, for failing tests and logs.

use std::fmt;

use super::{EffectNote, Explanation, Shown};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline)?;
        writeln!(f, "run {}, {}, revision {}", self.run, self.state, self.revision)?;
        self.why_not_moving.iter().try_for_each(|reason| writeln!(f, "- {}", reason.text))?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        for (heading, notes) in [
            ("happened", &self.effects.happened),
            ("may have happened", &self.effects.may_have_happened),
            ("did not start", &self.effects.not_started),
        ] {
            notes.iter().try_for_each(|note| writeln!(f, "{heading}: {note}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`: {}", self.key, self.action, self.state.as_str())?;
        if let Some(error) = &self.error {
            write!(f, ", {}: {}", error.code, error.message)?;
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ", {why}"))
    }
}

impl fmt::Display for EffectNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` ({}): {}", self.step, self.action, self.class, self.why)
    }
}
