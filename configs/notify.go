package configs

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/webhook"
	"github.com/callgate/callgate/tool"
)

// Notify is the endpoint that notices of approvals are sent to.
type Notify struct {
	URL *url.URL // may hold a secret
	// Key signs notices, and PreviousKey the one before, which signs them too
	// while receivers change over.
	Key         secret.Ref
	PreviousKey secret.Ref
	// Addresses are those that may be connected to; empty: public ones.
	Addresses []string `key:"addresses" of:"addresses or prefixes" form:"address"`
}

// Equal reports whether two endpoints are the same; nil is none.
func (n *Notify) Equal(other *Notify) bool {
	if n == nil || other == nil {
		return n == other
	}
	return *n.URL == *other.URL && n.Key == other.Key && n.PreviousKey == other.PreviousKey && slices.Equal(n.Addresses, other.Addresses)
}

// Keys reads the keys that notices are signed with. The error names the place of a key, never
// what is there.
func (n *Notify) Keys() ([]webhook.Key, error) {
	var keys []webhook.Key
	for _, place := range []secret.Ref{n.Key, n.PreviousKey} {
		if !place.IsSet() {
			continue
		}
		text, err := place.Read()
		if err != nil {
			return nil, err
		}
		key, err := webhook.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: found no such key; %w", place, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readNotify reads the endpoint of notices; nil if it is not valid.
func readNotify(n document.Node) *Notify {
	into := &Notify{}
	var to struct {
		URL string `key:"url" of:"where notices are sent" form:"url"`
	}
	faults := n.Report.Count()
	key := func(name string, into *secret.Ref) document.FieldReader {
		return document.Field(name, func(n document.Node) {
			secret.Decode(n, "the key that notices are signed with", into)
			// A key that cannot be read here may be there where it is served.
			text, err := into.Read()
			if err != nil {
				return
			}
			if _, err := webhook.ParseKey(text); err != nil {
				n.Fail("found no such key at %s; %v", into, err)
			}
		})
	}
	if !n.Object(append(append(document.Fields(&to), key("key", &into.Key), key("previous_key", &into.PreviousKey)),
		document.Fields(into)...)...) || n.Report.Count() > faults ||
		!n.Requires("found notify without %s; expected url and key", "url", "key") {
		return nil
	}
	if into.Key == into.PreviousKey {
		n.At("/previous_key").Fail("found the place of key; expected that of the key before")
	}
	reportRun(n, "notify", "notify", tool.Run{Type: "http", URL: to.URL, Addresses: into.Addresses})
	if n.Report.Count() > faults {
		return nil
	}
	var err error
	if into.URL, err = url.Parse(to.URL); err != nil {
		return nil // it was parsed before
	}
	if into.URL.Scheme == "http" && !netx.IsLoopbackHost(into.URL.Hostname()) {
		n.At("/url").Warn("notices of approvals are sent without TLS: anyone on the way can read whose calls wait")
	}
	return into
}
