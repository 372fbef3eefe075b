package identity_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/identity"
)

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

func issue(t testing.TB, c *identity.CallbackKeys, id string, until time.Time) string {
	t.Helper()
	token, err := c.Issue(id, noon, until)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A token stands for the one id until its time, and no other spelling of it, and
// nothing that differs from it in a bit, stands for anything.
func TestCapabilities(t *testing.T) {
	c := (*identity.CallbackKeys)(nil).Rotate(noon, 0)
	until := noon.Add(time.Minute + time.Millisecond)
	token := issue(t, c, "call_1", until)
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(token) {
		t.Errorf("found %q; expected what can stand in a path", token)
	}
	for _, now := range []time.Time{noon, until, noon.Add(-time.Hour)} {
		if id := c.Verify(token, now); id != "call_1" {
			t.Errorf("at %s it stands for %q", now, id)
		}
	}
	if id := c.Verify(token, until.Add(time.Second)); id != "" {
		t.Errorf("when it is over it stands for %q", id)
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for at := range raw {
		for bit := range 8 {
			raw[at] ^= 1 << bit
			if id := c.Verify(base64.RawURLEncoding.EncodeToString(raw), noon); id != "" {
				t.Errorf("with bit %d of byte %d changed it stands for %q", bit, at, id)
			}
			raw[at] ^= 1 << bit
		}
		if id := c.Verify(base64.RawURLEncoding.EncodeToString(raw[:at]), noon); id != "" {
			t.Errorf("cut at %d it stands for %q", at, id)
		}
	}
	for _, other := range []string{"", "x", token + "=", token + "A", " " + token, token + "\n", strings.Repeat("A", 100_000), base64.StdEncoding.EncodeToString(raw), "\x00"} {
		// Without padding, and where no byte is written as - or _, both alphabets write
		// the same.
		if id := c.Verify(other, noon); id != "" && other != token {
			t.Errorf("%.50q stands for %q", other, id)
		}
	}
	if last := token[len(token)-1:]; len(raw)%3 != 0 {
		for _, b := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			if s := token[:len(token)-1] + string(b); string(b) != last && c.Verify(s, noon) != "" {
				t.Errorf("it is also spelled with %c at its end", b)
			}
		}
	}
	if _, err := c.Issue("", noon, until); err == nil {
		t.Error("a token stands for nothing")
	}
	if _, err := c.Issue(strings.Repeat("x", 1000), noon, until); err == nil {
		t.Error("a token stands for an id that is too long to be verified")
	}
	var none *identity.CallbackKeys
	if _, err := none.Issue("x", noon, until); err == nil || none.Verify(token, noon) != "" || (&identity.CallbackKeys{}).Verify(token, noon) != "" {
		t.Error("without keys something is signed, or believed")
	}
}

// A key signs from its time on, those before it are believed while they are kept, and
// everybody who has the file knows the tokens of all others.
func TestCapabilitiesRotate(t *testing.T) {
	first := (*identity.CallbackKeys)(nil).Rotate(noon, 0)
	old := issue(t, first, "old", noon.Add(time.Hour))
	second := first.Rotate(noon.Add(time.Minute), 3)
	before := issue(t, second, "before", noon.Add(time.Hour))
	after, err := second.Issue("after", noon.Add(time.Minute), noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if first.Verify(before, noon) != "before" || first.Verify(after, noon) != "" {
		t.Error("the new key signs before its time, or is not used after it")
	}
	for token, id := range map[string]string{old: "old", before: "before", after: "after"} {
		if got := second.Verify(token, noon); got != id {
			t.Errorf("with both keys, %s is %q", id, got)
		}
	}
	third := second.Rotate(noon.Add(2*time.Minute), 1)
	if third.Len() != 2 || third.Verify(old, noon) != "" || third.Verify(after, noon) != "after" {
		t.Errorf("after the oldest has gone: %d keys", third.Len())
	}
	read, err := identity.ParseCallbackKeys(string(third.Encode()))
	if err != nil || read.Verify(after, noon) != "after" || string(read.Encode()) != string(third.Encode()) {
		t.Errorf("read again: %v", err)
	}
	if output := fmt.Sprintf("%v %+v %#v %s", third, third, third, third); strings.Contains(output, strings.Fields(string(third.Encode()))[20][:8]) || !strings.HasPrefix(output, "2 keys") {
		t.Errorf("it shows %s", output)
	}
}

// A file of keys that is cut, or holds anything else, is refused without showing it.
func TestCapabilitiesAreReadStrictly(t *testing.T) {
	whole := string((*identity.CallbackKeys)(nil).Rotate(noon, 0).Rotate(noon, 1).Encode())
	lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n") // a comment, two keys, the end
	key := strings.Fields(lines[1])[0]
	for name, text := range map[string]string{
		"empty":            "",
		"without its end":  strings.Join(lines[:3], "\n"),
		"cut in a key":     whole[:len(whole)/2],
		"no key":           "# end\n",
		"a key twice":      lines[1] + "\n" + lines[1] + "\n# end\n",
		"a short key":      key[1:] + " 2026-05-06T12:00:00Z\n# end\n",
		"another alphabet": strings.Repeat("+", len(key)) + " 2026-05-06T12:00:00Z\n# end\n",
		"no time":          key + "\n# end\n",
		"another time":     key + " yesterday\n# end\n",
		"a third word":     lines[1] + " x\n# end\n",
		"out of order":     lines[1] + "\n" + strings.Fields(lines[2])[0] + " 2020-01-01T00:00:00Z\n# end\n",
		"more behind":      whole + lines[1] + "\n",
	} {
		c, err := identity.ParseCallbackKeys(text)
		if err == nil || c != nil {
			t.Errorf("%s: it is read", name)
		} else if strings.Contains(err.Error(), key[1:9]) {
			t.Errorf("%s: it shows the key: %v", name, err)
		}
	}
	if c, err := identity.ParseCallbackKeys(strings.ReplaceAll(strings.TrimSuffix(whole, "\n"), "\n", "\r\n")); err != nil || c.Len() != 2 {
		t.Errorf("with other line ends: %v", err)
	}
}

func FuzzCapability(f *testing.F) {
	c := (*identity.CallbackKeys)(nil).Rotate(noon, 0)
	good, err := c.Issue("call_1", noon, noon.Add(time.Hour))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("AQAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		if id := c.Verify(token, noon); id != "" && token != good {
			t.Errorf("%q stands for %q", token, id)
		}
	})
}
