package configs

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/netx"
)

// Callbacks says where tools answer that take a call and answer later.
type Callbacks struct {
	// This gateway as those tools see it, with the prefix of its paths; absent: http:// and
	// server.listen. OXP callers ask there, too, how an authorization stands.
	URL string `key:"url" example:"https://gateway.example"`
	// The place (file:PATH or env:NAME) of the keys (see callgate keys callback) that sign callback
	// addresses; absent, the gateway makes callback-keys in data_dir. Gateways that share calls
	// share them.
	Keys secret.Ref `key:"keys" of:"the keys of the addresses that tools are given" example:"file:callback-keys"`
}

// CallbackKeysPath is the file of the keys that a gateway makes itself.
func CallbackKeysPath(dataDir string) string { return filepath.Join(dataDir, "callback-keys") }

// ReadNode reads the keys of callbacks.
func (c *Callbacks) ReadNode(n document.Node, _ string) {
	n.Object(document.Fields(c, document.Field("url",
		func(n document.Node) { readBaseURL(n, "the URL of this gateway as tools see it", &c.URL) }))...)
}

// readBaseURL reads a URL that paths are put behind.
func readBaseURL(n document.Node, of string, into *string) {
	n.Matching(of, `^https?://[^/?# "\\@]+(/[^?# "\\]*[^/?# "\\])?$`)
	if !n.Text(of, into) {
		return
	}
	if wrong := baseURLProblem(*into); wrong != "" {
		n.Fail("found %s; expected an absolute http or https URL with nothing behind its path, such as https://gateway.example", wrong)
	}
}

// baseURLProblem says why a path cannot be put behind a URL. It does not repeat it: it may
// hold a password.
func baseURLProblem(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" && u.Opaque == "" || strings.ContainsAny(raw, " \"\\"):
		return "what is no absolute URL"
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "a URL of another scheme"
	case u.User != nil:
		return "a URL with user info"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "a URL with a query or a fragment"
	case strings.HasSuffix(u.Path, "/"):
		return "a URL that ends with a slash"
	}
	return ""
}

// checkCallbacks holds the rules between its keys and the others, which matter where
// there are tools that call back.
func (l *loader) checkCallbacks(root document.Node, c *Config, entries []toolfile.Tool) {
	i := slices.IndexFunc(entries, func(e toolfile.Tool) bool { return e.Definition.Run.Type == lockfile.Callback })
	if i < 0 && !slices.ContainsFunc(c.Servers, func(s lockfile.Server) bool { return s.Type == lockfile.Callback }) {
		return
	}
	at := root.At("/callbacks")
	if c.Callbacks.URL == "" && netx.IsUnspecifiedListener(c.Server.Listen) {
		at.Fail("found tools that call back and no callbacks.url, with server.listen %q, which is no address to call; expected callbacks.url, this gateway as the tools see it", c.Server.Listen)
	}
	if !c.Callbacks.Keys.IsSet() && c.Store.Kind == StoreRedis && c.Store.Replicas > 1 {
		at.Fail("found tools that call back and no callbacks.keys, with several gateways; expected callbacks.keys, so that each takes the answers of all")
	}
	if u, err := url.Parse(c.Callbacks.URL); err == nil && u.Scheme == "http" && !netx.IsLoopbackHost(u.Hostname()) {
		root.At("/callbacks/url").Warn("tools call back without TLS: anyone who can read what they send can answer in their place")
	}
}
