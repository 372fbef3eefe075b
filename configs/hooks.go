package configs

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/internal/webhook"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	// maxHooks bounds the hooks of a configuration: each value passes all of them.
	maxHooks = 32
	// maxHookPatterns bounds the patterns of a hook.
	maxHookPatterns  = 64
	defaultHookBytes = 1 << 20
	defaultHookTime  = 2 * time.Second
)

// readHooks reads the hooks file. labels are those that threads can have.
func readHooks(root document.Node, labels []string) *hook.Set {
	var all []*hook.Hook
	names := map[string]document.Node{}
	root.Object(document.Field("hooks", func(n document.Node) {
		n.List("hooks", func(i int, item document.Node) {
			h := readHook(item, labels)
			if first, twice := names[h.Name]; twice && h.Name != "" {
				item.Fail("found the hook %q a second time; expected each once (first at %s:%d)", h.Name, first.File, first.Line)
			}
			names[h.Name] = item
			if i == maxHooks {
				item.Fail("found more than %d hooks; expected at most that many", maxHooks)
			}
			all = append(all, h)
		})
	}))
	return hook.NewSet(all)
}

// readHook reads one hook.
func readHook(n document.Node, labels []string) *hook.Hook {
	h := &hook.Hook{OnMatch: hook.Deny, MaxBytes: defaultHookBytes}
	out := callout{Callout: hook.Callout{Timeout: defaultHookTime}, Headers: map[string]secret.Ref{}}
	var label string
	faults := n.Report.Count()
	n.Describes(func(s *document.Schema) {
		s.OneOf = []*document.Schema{{Required: []string{"patterns"}}, {Required: []string{"url"}}}
	})
	if !n.Object(append(document.Fields(h,
		document.Field("at", func(n document.Node) { readPoints(n, &h.At) }),
		document.Field("tools", func(n document.Node) { readNames(n, "tools", &h.Tools) }),
		document.Field("agents", func(n document.Node) { readNames(n, "agents", &h.Agents) }),
		document.Field("patterns", func(n document.Node) { readHookPatterns(n, &h.Patterns) }),
		document.Field("labels", func(n document.Node) {
			readLabels(n, &h.Labels)
			n.NotEmptyAs("found an empty list; expected at least one label, or no key labels where the callout answers none")
		}),
	), append(document.Fields(&out,
		document.Field("headers", func(n document.Node) { out.readHeaders(n) }),
	), document.Field("label", func(n document.Node) { n.Label("a label", &label) }))...)...) || n.Report.Count() > faults ||
		!n.Requires("found a hook without %s; expected name, at, and patterns or url", "name", "at") || n.Describing() {
		return h
	}
	switch {
	case n.Has("tools") && slices.Contains(h.At, hook.Text):
		n.At("/tools").Fail("found tools with at: text; expected a hook of its own for texts, which are of no tool")
	case n.Has("patterns") == n.Has("url"):
		n.Fail("found the hook %q with %s; expected one of patterns and url", h.Name,
			map[bool]string{true: "both patterns and url", false: "neither patterns nor url"}[n.Has("url")])
	case slices.Contains(h.At, hook.Text) && (n.Has("label") || len(h.Labels) > 0 || h.OnMatch == hook.Label):
		n.At("/at").Fail("found text in the hook %q, which labels; expected call, result or both: what a model says labels nothing", h.Name)
	case h.OnMatch == hook.Label && !n.Has("label") && n.Has("patterns"):
		n.At("/on_match").Fail("found on_match: label without label; expected the label that a match adds to the thread")
	case h.OnMatch != hook.Label && n.Has("label") && n.Has("patterns"):
		n.At("/label").Fail("found label without on_match: label; expected both, or neither")
	case n.Has("patterns"):
		if n.Has("label") {
			checkLabel(n.At("/label"), label, labels)
			h.Labels = []string{label}
		}
		for _, key := range []string{"addresses", "timeout", "headers", "key", "labels"} {
			if n.Has(key) {
				n.At("/"+key).Fail("found %s with patterns; expected it only with url", key)
			}
		}
	case n.Has("on_match"):
		n.At("/on_match").Fail("found on_match with url; expected it only with patterns, since a callout answers what is to be done")
	case n.Has("label"):
		n.At("/label").Fail("found label with url; expected labels, those that the callout may answer")
	default:
		for i, label := range h.Labels {
			checkLabel(n.At(refusal.Pointer("labels", strconv.Itoa(i))), label, labels)
		}
		out.read(n, h)
	}
	return h
}

// readPoints reads where a hook is run.
func readPoints(n document.Node, into *[]hook.Point) {
	n.List("call, result and text", func(_ int, item document.Node) {
		var at hook.Point
		document.ReadChoice(item, "where the hook is run", &at, hook.Points()...)
		if slices.Contains(*into, at) {
			item.Fail("found %s a second time; expected it once", item.Describe())
		}
		*into = append(*into, at)
	})
	n.NotEmptyAs("found an empty list; expected call, result, text or several: where the hook is run")
	n.Unique()
}

// readNames reads patterns of names.
func readNames(n document.Node, of string, into *[]string) {
	n.List("names of "+of, func(_ int, item document.Node) {
		item.Matching("a name, NAME.* for all names below it, or *", hook.NamesPattern)
		if !item.IsString() || !hook.ValidNames(item.Value) {
			item.Fail("found %s; expected a name, NAME.* for all names below it, or *: one of the %s", item.Describe(), of)
		}
		*into = append(*into, item.Value)
	})
	n.NotEmptyAs("found an empty list; expected at least one name, or no key " + of + " for all")
}

// readHookPatterns reads patterns: names of built-in ones, and own ones.
func readHookPatterns(n document.Node, into *[]*hook.Pattern) {
	n.List("patterns", func(i int, item document.Node) {
		if i == maxHookPatterns {
			item.Fail("found more than %d patterns; expected at most that many", maxHookPatterns)
		}
		if !item.IsMapping() {
			item.Among("a built-in pattern", hook.BuiltinNames()...)
			found := hook.Builtin(item.Value)
			if !item.IsString() || found == nil {
				item.Fail("found %s; expected a built-in pattern (%s), or {name, regex}%s", item.Describe(),
					strings.Join(hook.BuiltinNames(), ", "), similar.DidYouMean(item.Value, hook.BuiltinNames()))
			}
			*into = append(*into, found...)
			return
		}
		var name, expr string
		ok := item.Object(
			document.Field("name", func(n document.Node) { n.Label("the pattern's name", &name) }),
			document.Text("regex", "an expression of RE2", &expr),
		)
		if !ok || !item.Requires("found a pattern without %s; expected name and regex", "name", "regex") || item.Describing() {
			return
		}
		p, err := hook.NewPattern(name, expr)
		if err != nil {
			item.At("/regex").Fail("%v", err)
			return
		}
		*into = append(*into, p)
	})
	n.NotEmpty("pattern")
}

// callout is a callout that is being read.
type callout struct {
	hook.Callout `key:""`
	Address      string                `key:"url" of:"the URL that is asked" form:"url"`
	Headers      map[string]secret.Ref `key:"headers"`
	Key          secret.Ref            `key:"key" of:"the key that requests are signed with"`
}

// ownHeaders are those that requests have anyway.
var ownHeaders = []string{"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Trailer",
	"Transfer-Encoding", "Upgrade", "User-Agent", "Webhook-Id", "Webhook-Signature", "Webhook-Timestamp"}

func (c *callout) readHeaders(n document.Node) {
	n.Members("headers", func(key, value document.Node) {
		key.Matching("the name of a header", "^[!#$%&'*+.^_|~0-9A-Za-z-]+$")
		var place secret.Ref
		secret.Decode(value, "the value of a header", &place)
		name := http.CanonicalHeaderKey(key.Value)
		_, twice := c.Headers[name]
		if !ascii.IsToken(key.Value) || slices.Contains(ownHeaders, name) || twice {
			key.Fail("found the header %s; expected the name of a header that requests do not have already", key.Excerpt())
			return
		}
		c.Headers[name] = place
	})
}

// read checks the callout, and gives it to its hook.
func (c *callout) read(n document.Node, h *hook.Hook) {
	faults := n.Report.Count()
	reportRun(n, "hook", "hook", tool.Run{Type: "http", URL: c.Address, Addresses: c.Addresses})
	if n.Report.Count() > faults {
		return
	}
	target, err := url.Parse(c.Address)
	if err != nil {
		return // it was parsed before
	}
	if target.Scheme == "http" && !netx.IsLoopbackHost(target.Hostname()) {
		n.At("/url").Warn("the hook is asked without TLS: anyone on the way can read the arguments and results that it is asked about")
	}
	c.URL = target
	headers, key := c.Headers, c.Key
	c.Header = func(id string, at time.Time, body []byte) (http.Header, error) {
		return calloutHeader(headers, key, id, at, body)
	}
	h.Callout = &c.Callout
}

// calloutHeader is the header of a request to a callout. Secrets are read for each, so that a new
// one holds at once.
func calloutHeader(headers map[string]secret.Ref, key secret.Ref, id string, at time.Time, body []byte) (http.Header, error) {
	all := http.Header{}
	if key.IsSet() {
		text, err := key.Read()
		if err != nil {
			return nil, err
		}
		signer, err := webhook.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: found no such key; %w", key, err)
		}
		all = webhook.Headers(id, at, body, []webhook.Key{signer})
	}
	for name, place := range headers {
		value, err := place.Read()
		switch {
		case err != nil:
			return nil, err
		case !ascii.IsPrintable(value):
			return nil, fmt.Errorf("%s: found a character that no header may have; expected the value of a header", place)
		}
		all[name] = []string{value}
	}
	return all, nil
}

// warnUnmatchedHooks warns of names in hooks that match nothing: such a hook is never run.
func (l *loader) warnUnmatchedHooks(root document.Node, c *Config) {
	if len(l.report.Faults) > 0 {
		return
	}
	tools := []string{}
	for _, e := range c.Tools.Entries() {
		tools = append(tools, e.Name())
	}
	agents := slices.Sorted(maps.Keys(c.Agents))
	for i, h := range c.Hooks.All() {
		warn := func(key string, patterns, names []string) {
			for j, pattern := range patterns {
				if !hook.Matches(pattern, names) {
					root.At(fmt.Sprintf("/hooks/%d/%s/%d", i, key, j)).Warn("the hook %q is for %q, which matches none of the %s%s", h.Name,
						pattern, key, similar.DidYouMean(pattern, names))
				}
			}
		}
		if !l.toolsOfRequests {
			warn("tools", h.Tools, tools)
		}
		warn("agents", h.Agents, agents)
	}
}
