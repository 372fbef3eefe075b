package identity_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/callgate/callgate/identity"
)

func TestKeys(t *testing.T) {
	key, sha := identity.NewAPIKey()
	other, otherSHA := identity.NewAPIKey()
	if key == other || sha == otherSHA || len(key) < 40 {
		t.Fatalf("keys %q and %q", key, other)
	}
	if sum := sha256.Sum256([]byte(key)); hex.EncodeToString(sum[:]) != sha {
		t.Error("the hash is not of the key")
	}
	p := &identity.Principal{Name: "ci"}
	keys, err := identity.NewAPIKeys(map[string]*identity.Principal{sha: p})
	if err != nil {
		t.Fatal(err)
	}
	if keys.Authenticate(key) != p {
		t.Error("the key is not known")
	}
	for _, wrong := range []string{"", other, key[:len(key)-1], key + "x", " " + key, sha, strings.ToUpper(key), strings.Repeat("a", 10_000)} {
		if keys.Authenticate(wrong) != nil {
			t.Errorf("%.50q is let in", wrong)
		}
	}
	var none *identity.APIKeys
	if none.Authenticate(key) != nil || (&identity.APIKeys{}).Authenticate(key) != nil {
		t.Error("nobody's keys let somebody in")
	}
	for _, bad := range []string{"", "abc", strings.Repeat("z", 64), sha + "00"} {
		if _, err := identity.NewAPIKeys(map[string]*identity.Principal{bad: p}); err == nil {
			t.Errorf("%q is taken for a hash", bad)
		}
	}
	if _, err := identity.NewAPIKeys(map[string]*identity.Principal{sha: p, strings.ToUpper(sha): p}); err == nil {
		t.Error("one key for two principals")
	}
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "Basic abc": "", "Bearer": "", "Bearer ": "", "abc": "", "Bearer a b": "", "Bearer  a": "a", "Bearer  ": "", "Bearer a,b": "",
		"Bearer a\x00": "", "Bearer a\xff": "", "Bearer é": "", "BEARER a.b~c+d/e_f-g==": "a.b~c+d/e_f-g==",
	} {
		if got := identity.Bearer(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
