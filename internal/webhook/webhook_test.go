package webhook_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/webhook"
)

// secretOf is the text of a key of so many bytes.
func secretOf(b []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(b) }

func key(t interface{ Fatal(...any) }, secret string) webhook.Key {
	k, err := webhook.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseKey(t *testing.T) {
	good := secretOf([]byte(strings.Repeat("k", 24)))
	for text, ok := range map[string]bool{
		good: true, secretOf([]byte(strings.Repeat("k", 64))): true, secretOf([]byte(strings.Repeat("k", 32))): true,
		"": false, "whsec_": false, strings.TrimPrefix(good, "whsec_"): false, "whsk_" + good[6:]: false, good + "\n": false, " " + good: false, good[:20] + "\n" + good[20:]: false,
		secretOf([]byte(strings.Repeat("k", 23))): false, secretOf([]byte(strings.Repeat("k", 65))): false, good + "=": false, strings.Replace(good, "a", "-", 1): false,
		strings.TrimRight(secretOf([]byte(strings.Repeat("k", 32))), "="): false, "WHSEC_" + good[6:]: false,
	} {
		if _, err := webhook.ParseKey(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		} else if err != nil && len(text) > 10 && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats it: %v", err)
		}
	}
}

// Every message verifies by the library of Standard Webhooks with each of its keys, and by no
// other key, nor with another id, time or body.
func TestHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// To HMAC, keys that differ by zeros at their ends are one.
		secrets := rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.Byte(), 24, 64), 3, 3, func(b []byte) string { return strings.TrimRight(string(b), "\x00") }).Draw(t, "keys")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		id := rapid.StringMatching(`[A-Za-z0-9_]{1,40}`).Draw(t, "id")
		headers := webhook.Headers(id, time.Now(), body, []webhook.Key{key(t, secretOf(secrets[0])), key(t, secretOf(secrets[1]))})
		for i, secret := range secrets {
			wh, err := standardwebhooks.NewWebhook(secretOf(secret))
			if err != nil {
				t.Fatal(err)
			}
			if err := wh.Verify(body, headers); (err == nil) != (i < 2) {
				t.Fatalf("key %d: %v", i, err)
			}
			if wh.Verify(append([]byte("x"), body...), headers) == nil {
				t.Fatal("another body verifies")
			}
			for _, name := range []string{standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp} {
				changed := headers.Clone()
				changed.Set(name, "1"+headers.Get(name))
				if wh.VerifyIgnoringTimestamp(body, changed) == nil {
					t.Fatalf("another %s verifies", name)
				}
			}
		}
	})
}

// FuzzParseKey: the library reads every key that is accepted, and signs with it as this package
// does.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{secretOf([]byte(strings.Repeat("k", 24))), "whsec_", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_=\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := webhook.ParseKey(text)
		if err != nil {
			return
		}
		wh, err := standardwebhooks.NewWebhook(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := wh.Verify([]byte("{}"), webhook.Headers("id", time.Now(), []byte("{}"), []webhook.Key{k})); err != nil {
			t.Fatal(err)
		}
	})
}
