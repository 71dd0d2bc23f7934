//! A codec with authenticated encryption: the example of the documentation.

#![expect(unreachable_pub, reason = "it reads as in an application")]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use serde_json::Value;
use surefoot_codec::{CodecError, PayloadCodec, PayloadPlace};

/// Keys by name. New payloads get the current one; the others stay for what they have encrypted.
pub struct Vault {
    keys: BTreeMap<String, XChaCha20Poly1305>,
    current: String,
}

impl Vault {
    /// Every key that was ever used, and the name of the one to use from now on.
    pub fn new(keys: impl IntoIterator<Item = (String, [u8; 32])>, current: &str) -> Self {
        let cipher = |key: [u8; 32]| XChaCha20Poly1305::new(&Key::from(key));
        let keys = keys.into_iter().map(|(name, key)| (name, cipher(key))).collect();
        Self { keys, current: current.to_owned() }
    }

    fn cipher(&self, key: &str) -> Result<&XChaCha20Poly1305, CodecError> {
        self.keys.get(key).ok_or_else(|| CodecError::UnknownKey { key: key.to_owned() })
    }
}

impl PayloadCodec for Vault {
    /// The name of the key, a dot, and nonce and ciphertext in base64.
    fn encode(&self, place: &PayloadPlace<'_>, plain: &str) -> Result<String, CodecError> {
        let nonce = XNonce::generate();
        let aad = place.associated_data();
        let payload = Payload { msg: plain.as_bytes(), aad: aad.as_bytes() };
        let refused = |_| CodecError::Refused { why: "it is too long to encrypt".to_owned() };
        let encrypted = self.cipher(&self.current)?.encrypt(&nonce, payload).map_err(refused)?;
        let text = BASE64.encode([nonce.as_slice(), &encrypted].concat());
        Ok(format!("{}.{text}", self.current))
    }

    fn decode(&self, place: &PayloadPlace<'_>, kept: &str) -> Result<String, CodecError> {
        let damaged = |why: &str| CodecError::Damaged { why: why.to_owned() };
        let (key, text) = kept.split_once('.').ok_or_else(|| damaged("it names no key"))?;
        let cipher = self.cipher(key)?;
        let bytes = BASE64.decode(text).map_err(|_| damaged("it is no base64"))?;
        let (nonce, encrypted) =
            bytes.split_first_chunk::<24>().ok_or_else(|| damaged("it is too short"))?;
        let aad = place.associated_data();
        let payload = Payload { msg: encrypted, aad: aad.as_bytes() };
        let plain = cipher.decrypt(&XNonce::from(*nonce), payload);
        let plain = plain.map_err(|_| damaged("it does not pass its authentication"))?;
        String::from_utf8(plain).map_err(|_| damaged("it is no text"))
    }

    fn redact(&self, _: &PayloadPlace<'_>, _: Value) -> Value {
        Value::from("[redacted]")
    }
}
