//! An issuer of signed tokens, with keys of its own making.

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair as RsaKeyPair, KeySize},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};

/// A key pair that signs tokens. Made anew every time; prints its id alone.
#[derive(Clone)]
pub struct TokenSigner {
    id: String,
    algorithm: Algorithm,
    key: EncodingKey,
}

/// Says that a key could not be made or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSigner;

impl TokenSigner {
    /// Makes an RSA key of 2,048 bits, which signs as RS256.
    ///
    /// # Errors
    /// [`NoSigner`], if the library makes none.
    pub fn rs256(id: &str) -> Result<Self, NoSigner> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| NoSigner)?;
        let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| NoSigner)?;
        let body = STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        let key = EncodingKey::from_rsa_pem(pem.as_bytes()).map_err(|_| NoSigner)?;
        Ok(Self { id: id.to_owned(), algorithm: Algorithm::RS256, key })
    }

    /// Makes a key on the curve P-256, which signs as ES256.
    ///
    /// # Errors
    /// [`NoSigner`], if the library makes none.
    pub fn es256(id: &str) -> Result<Self, NoSigner> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| NoSigner)?;
        let der = pair.to_pkcs8v1().map_err(|_| NoSigner)?;
        Ok(Self {
            id: id.to_owned(),
            algorithm: Algorithm::ES256,
            key: EncodingKey::from_ec_der(der.as_ref()),
        })
    }

    /// Returns the public half, as a member of a JSON Web Key Set.
    ///
    /// # Errors
    /// [`NoSigner`], if the library cannot take the key apart.
    pub fn public(&self) -> Result<Value, NoSigner> {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm).map_err(|_| NoSigner)?;
        jwk.common.key_id = Some(self.id.clone());
        serde_json::to_value(&jwk).map_err(|_| NoSigner)
    }

    /// Returns the JSON Web Key Set with the public halves.
    ///
    /// # Errors
    /// [`NoSigner`], as [`Self::public`].
    pub fn set(of: &[&Self]) -> Result<String, NoSigner> {
        let keys: Vec<Value> = of.iter().map(|signer| signer.public()).collect::<Result<_, _>>()?;
        Ok(json!({ "keys": keys }).to_string())
    }

    /// Signs the claims.
    ///
    /// # Errors
    /// [`NoSigner`], if the library does not sign.
    pub fn sign(&self, claims: &Value) -> Result<String, NoSigner> {
        self.sign_as(Some(&self.id), claims)
    }

    /// Signs the claims under another id of the key, or under none.
    ///
    /// # Errors
    /// [`NoSigner`], if the library does not sign.
    pub fn sign_as(&self, id: Option<&str>, claims: &Value) -> Result<String, NoSigner> {
        let header = Header { kid: id.map(str::to_owned), ..Header::new(self.algorithm) };
        jsonwebtoken::encode(&header, claims, &self.key).map_err(|_| NoSigner)
    }

    /// Signs bytes in the place of claims, whatever they are.
    ///
    /// # Errors
    /// [`NoSigner`], if the library does not sign.
    pub fn sign_bytes(&self, claims: &[u8]) -> Result<String, NoSigner> {
        let header = json!({"typ": "JWT", "alg": self.algorithm, "kid": self.id}).to_string();
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, self.algorithm);
        Ok(format!("{message}.{}", signature.map_err(|_| NoSigner)?))
    }
}

impl std::fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSigner").field("id", &self.id).finish_non_exhaustive()
    }
}
