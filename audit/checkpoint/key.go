package checkpoint

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
)

// The blocks of PEM that keys stand in.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// NewKey makes a key pair for checkpoints, as PEM: the private key, in PKCS #8, signs
// them, and the public key verifies them.
func NewKey() (private, public []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	inner, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, nil, err
	}
	outer, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, err
	}
	private = pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: inner})
	return private, pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: outer}), nil
}

// ParseSignKey reads a private key as NewKey writes it. The error quotes
// nothing of it.
func ParseSignKey(text []byte) (ed25519.PrivateKey, error) {
	wrong := errors.New("found no Ed25519 key; expected one private key as PEM (PKCS #8)")
	block, rest := pem.Decode(text)
	if block == nil || block.Type != privateBlock || !blank(rest) {
		return nil, wrong
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, wrong
	}
	return key, nil
}

// ParsePublicKey reads a public key as NewKey writes it.
func ParsePublicKey(text []byte) (ed25519.PublicKey, error) {
	wrong := errors.New("found no Ed25519 key; expected one public key as PEM")
	block, rest := pem.Decode(text)
	if block == nil || block.Type != publicBlock || !blank(rest) {
		return nil, wrong
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok := parsed.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, wrong
	}
	return key, nil
}

func blank(text []byte) bool {
	for _, c := range text {
		if c != '\n' && c != '\r' && c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}

// KeyID names a public key in checkpoints: the first 16 hex digits of its SHA-256.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}
