//! What can go wrong with a coordination resource, by what the caller must do next.

/// The error of every coordination primitive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The server is too old, or lacks something that is needed. Nothing was created on it.
    #[error("the server has {found}, and {feature} needs {required}: use a server that has it")]
    UnsupportedServer {
        /// What is there.
        found: String,
        /// What is needed.
        required: String,
        /// For what.
        feature: &'static str,
    },
    /// A name is too long, empty, or has characters that it may not have.
    #[error("`{name}` cannot be {what}: {rule}")]
    InvalidName {
        /// What it should name.
        what: &'static str,
        /// As it was given, cut after 60 characters.
        name: String,
        /// What would be accepted.
        rule: &'static str,
    },
    /// A setting or an argument makes no sense.
    #[error("{option} cannot be so: {why}")]
    InvalidOption {
        /// Which.
        option: &'static str,
        /// What is wrong and what would be accepted.
        why: String,
    },
    /// This process declared the resource before, with other settings.
    #[error(
        "{resource} was declared in this process with another {field}: declare it in one place"
    )]
    ConflictingDeclaration {
        /// Which resource.
        resource: String,
        /// The setting that differs.
        field: String,
    },
    /// The resource exists with other settings. It was not changed.
    #[error("{resource} exists with {field} {found}, declared is {declared}; {remedy}")]
    ResourceDrift {
        /// Which resource.
        resource: String,
        /// The setting that differs.
        field: String,
        /// As it was declared.
        declared: String,
        /// As it is.
        found: String,
        /// What a person can do about it, and what that costs.
        remedy: &'static str,
    },
    /// More than fits. Nothing was stored.
    #[error(
        "{bytes} bytes are over the limit of {limit_bytes}: store the data elsewhere and send where it is"
    )]
    PayloadTooLarge {
        /// With its envelope.
        bytes: usize,
        /// What fits.
        limit_bytes: usize,
    },
    /// The resource takes nothing more now. Nothing was stored.
    #[error("{resource} is full: let its workers catch up, or declare it larger")]
    StoreFull {
        /// Which resource.
        resource: String,
    },
    /// Somebody else holds or has settled what the delivery was of; nothing was changed.
    #[error("the delivery is not yours any more: drop its result")]
    StaleDelivery,
    /// What was asked for is not retained any more: read the domain's own state, then go on from what is there.
    #[error(
        "messages from {requested} on are asked for, the first that is kept is {first_available}"
    )]
    RetentionGap {
        /// The sequence number that was wanted.
        requested: u64,
        /// The first that is there.
        first_available: u64,
    },
    /// The cursor is of another resource, or of one that was made anew.
    #[error("the cursor is of another resource: begin without one")]
    CursorMismatch,
    /// A snapshot has more entries than it may.
    #[error("there are more than {limit} entries: narrow the snapshot with a prefix")]
    SnapshotOverflow {
        /// How many it may have.
        limit: usize,
    },
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// It is there already, or changed meanwhile: look, and decide again.
    #[error("{what} is there already, or was changed by somebody else")]
    Conflict {
        /// What.
        what: String,
    },
    /// What is stored cannot be read by this version.
    #[error("{what} cannot be read: {why}")]
    Corrupt {
        /// Which message or resource.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server said no, for a reason that has no variant of its own.
    #[error("the server refused to {operation}: {message} (code {code})")]
    Refused {
        /// What was asked.
        operation: &'static str,
        /// The server's code.
        code: u64,
        /// The server's words.
        message: String,
    },
    /// The server answers, and does not let this user in.
    #[error(
        "the server refused the credentials when asked to {operation}: check the user and the password, or the token, of its URL"
    )]
    Unauthorized {
        /// What was asked.
        operation: &'static str,
        /// What was heard.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server did not answer. What was asked may have happened; asking once more with the same ids is safe.
    #[error(
        "the server did not answer when asked to {operation}: look whether it runs and can be reached"
    )]
    Unavailable {
        /// What was asked.
        operation: &'static str,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
