//! Signatures after the Standard Webhooks specification, version 1.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use hyper::header::HeaderValue;
use ring::hmac;

/// The text that a secret begins with.
const PREFIX: &str = "whsec_";

/// With or without `=` at the end: both are in use.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secret with which an endpoint can tell our requests from others'.
#[derive(Clone)]
pub struct SigningSecret(hmac::Key);

impl SigningSecret {
    /// Reads `whsec_` and base64.
    ///
    /// # Errors
    /// What is wrong with it, without its text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "`signing_secret` must be `whsec_` and the base64 of the secret's bytes";
        let encoded = text.strip_prefix(PREFIX).ok_or(WRONG)?;
        let bytes = BASE64.decode(encoded).map_err(|_| WRONG)?;
        if bytes.is_empty() {
            return Err(WRONG);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The value of `webhook-signature` for this message at this time, in seconds since 1970.
    pub fn sign(&self, id: &HeaderValue, timestamp_s: i64, body: &[u8]) -> HeaderValue {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(id.as_bytes());
        context.update(format!(".{timestamp_s}.").as_bytes());
        context.update(body);
        let signature = format!("v1,{}", BASE64.encode(context.sign()));
        HeaderValue::from_str(&signature).expect("base64 can stand in a header")
    }
}

/// Without the secret.
impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn the_specifications_own_example_is_signed_alike() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(
            secret.sign(
                &HeaderValue::from_static("msg_p5jXN8AQM9LWM0D4loKWxJek"),
                1_614_265_330,
                br#"{"test": 2432232314}"#
            ),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn a_secret_is_prefixed_base64() {
        for good in ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_YQ==", "whsec_YQ"] {
            assert!(SigningSecret::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_???", "WHSEC_YQ=="] {
            let text = SigningSecret::parse(bad).unwrap_err();
            assert!(text.starts_with("`signing_secret` must be"), "{bad}: {text}");
        }
    }
}
