package callback_test

import (
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// TestAuthorizationURLs: an auth_url is taken where the rule for URLs that people open
// shows it, and nowhere else.
func TestAuthorizationURLs(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	for url, visible := range corpora.URLs(t) {
		before := c.state().AuthURL
		if visible {
			c.says(200, c.message("oauth", "auth_url", url))
			before = url
		} else {
			c.says(400, c.message("oauth", "auth_url", url))
		}
		if got := c.state().AuthURL; got != before {
			t.Errorf("%q: the caller is shown %q", url, got)
		}
	}
}
