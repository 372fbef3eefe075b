package upstream

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/invalid"
	"github.com/callgate/callgate/internal/netx"
)

// Bounds of definitions.
const (
	maxRetries     = 10
	maxConnectTime = 30 * time.Second // also ends connection attempts that no request waits for
	maxTime        = 24 * time.Hour
	minBytes       = 1 << 10
	maxBytes       = 1 << 30
	maxEvents      = 1 << 30
	maxRepairs     = 100
	maxSteps       = 1000
	maxModelLength = 256
)

// MaxMemberName bounds the name of one of Rules.RequestMembers.
const MaxMemberName = 64

// Validate returns all faults, in the order of the definitions; without one they can be used.
func Validate(definitions []Definition) []invalid.Field {
	var v validation
	names, models := map[string]bool{}, map[string]bool{}
	for i, d := range definitions {
		at := strconv.Itoa(i)
		switch {
		case !isName(d.Name):
			v.add(fmt.Sprintf("found %q, expected a name of 1 to 64 letters, digits, '.', '_' or '-'", d.Name), at, "name")
		case names[d.Name]:
			v.add(fmt.Sprintf("found %q, which is the name of an upstream above; expected each to have its own", d.Name), at, "name")
		}
		names[d.Name] = true
		if fault := baseURLFault(d.BaseURL, d.InsecureHTTP); fault != "" {
			v.add(fault, at, "base_url")
		}
		v.rules(d.Rules, at)
		if len(d.Models) == 0 {
			v.add("found no models, expected at least one", at, "models")
		}
		for j, m := range d.Models {
			v.model(m, models, at, "models", strconv.Itoa(j))
		}
		v.bounds(d, at)
	}
	return v.faults
}

// validation collects faults.
type validation struct{ faults []invalid.Field }

func (v *validation) add(message string, path ...string) {
	v.faults = append(v.faults, invalid.Field{Path: path, Message: message})
}

func (v *validation) model(m Model, seen map[string]bool, path ...string) {
	switch prefix, _ := strings.CutSuffix(m.ID, "*"); {
	case !isVisible(m.ID):
		v.add(fmt.Sprintf("found %q, expected the name of a model, of 1 to %d characters that can be seen", m.ID, maxModelLength),
			childPath(path, "id")...)
	case strings.Contains(prefix, "*"):
		v.add(fmt.Sprintf("found %q, expected a name, or the beginning of names before one * at the end", m.ID), childPath(path, "id")...)
	case seen[m.ID]:
		v.add(fmt.Sprintf("found %q, which an upstream has already; expected each model once", m.ID), childPath(path, "id")...)
	}
	seen[m.ID] = true
	if m.UpstreamModel != "" && (!isVisible(m.UpstreamModel) || strings.Contains(m.UpstreamModel, "*")) {
		v.add(fmt.Sprintf("found %q, expected the one name that the provider knows the model by", m.UpstreamModel),
			childPath(path, "upstream_model")...)
	}
	if m.Rules != nil {
		v.rules(*m.Rules, path...)
	}
}

func (v *validation) rules(r Rules, path ...string) {
	oneOf(v, r.Protocol, []Protocol{Native, Text}, childPath(path, "protocol"))
	if len(r.Modes) == 0 {
		v.add("found no modes, expected enforce, orchestrate or both", childPath(path, "modes")...)
	}
	for i, m := range r.Modes {
		at := childPath(childPath(path, "modes"), strconv.Itoa(i))
		if oneOf(v, m, []Mode{Enforce, Orchestrate}, at); slices.Contains(r.Modes[:i], m) {
			v.add(fmt.Sprintf("found %q twice, expected each mode once", m), at...)
		}
	}
	oneOf(v, r.CallFormat, []Presentation{AsToolCalls, AsContent}, childPath(path, "call_format"))
	oneOf(v, r.NativeProse, []Treatment{Pass, Drop, Refuse}, childPath(path, "native_prose"))
	oneOf(v, r.StructuredOutput, []Treatment{Judge, Pass}, childPath(path, "structured_output"))
	oneOf(v, r.Parallel, []Treatment{Pass, Refuse}, childPath(path, "parallel"))
	oneOf(v, r.Reasoning, []Treatment{Pass, Drop}, childPath(path, "reasoning"))
	oneOf(v, r.Audio, []Treatment{Pass, Drop}, childPath(path, "audio"))
	oneOf(v, r.StreamBuffer, []Buffer{Parser, Whole}, childPath(path, "stream_buffer"))
	for i, name := range r.RequestMembers {
		at := childPath(childPath(path, "request_members"), strconv.Itoa(i))
		switch {
		case name == "" || len(name) > MaxMemberName || !ascii.IsVisible(name) || strings.ContainsAny(name, `*"\\`):
			v.add(fmt.Sprintf("found %q, expected the name of one member of a request, of 1 to %d visible ASCII characters, without * and quotes", name, MaxMemberName), at...)
		case slices.Contains(r.RequestMembers[:i], name):
			v.add(fmt.Sprintf("found %q twice, expected each member once", name), at...)
		}
	}
	v.count(r.MaxRepairs, 0, maxRepairs, childPath(path, "max_repairs"))
	v.count(r.MaxTurns, 1, maxSteps, childPath(path, "max_turns"))
	v.time(r.RunTimeout, maxTime, childPath(path, "run_timeout"))
	if r.DefaultOutputTokens < 0 {
		v.add(fmt.Sprintf("found %d, expected a whole number, 0 for no bound", r.DefaultOutputTokens),
			childPath(path, "default_output_tokens")...)
	}
	if r.TokenBudget < 0 {
		v.add(fmt.Sprintf("found %d, expected a whole number, 0 for no bound", r.TokenBudget), childPath(path, "token_budget")...)
	}
	v.wires(r, path)
}

func (v *validation) bounds(d Definition, at string) {
	v.time(d.Timeouts.Connect, maxConnectTime, []string{at, "timeouts", "connect"})
	v.time(d.Timeouts.Response, maxTime, []string{at, "timeouts", "response"})
	v.time(d.Timeouts.Idle, maxTime, []string{at, "timeouts", "idle"})
	v.time(d.Timeouts.Total, maxTime, []string{at, "timeouts", "total"})
	v.count(d.Retries, 0, maxRetries, []string{at, "retries"})
	v.count(d.MaxBody, minBytes, maxBytes, []string{at, "max_body"})
	v.count(d.MaxEvent, minBytes, maxBytes, []string{at, "max_event"})
	v.count(d.MaxStream, minBytes, maxBytes, []string{at, "max_stream"})
	v.count(d.MaxEvents, 1, maxEvents, []string{at, "max_events"})
}

func (v *validation) count(n, low, high int, path []string) {
	if n < low || n > high {
		v.add(fmt.Sprintf("found %d, expected a whole number from %d to %d", n, low, high), path...)
	}
}

func (v *validation) time(d, high time.Duration, path []string) {
	if d <= 0 || d > high {
		v.add(fmt.Sprintf("found %s, expected a time above 0 and at most %s", duration.Spell(d), duration.Spell(high)), path...)
	}
}

// oneOf adds a fault unless the word is one of the list.
func oneOf[W ~string](v *validation, word W, allowed []W, path []string) {
	if slices.Contains(allowed, word) {
		return
	}
	quoted := make([]string, len(allowed))
	for i, w := range allowed {
		quoted[i] = strconv.Quote(string(w))
	}
	v.add(fmt.Sprintf("found %q, expected %s", word, strings.Join(quoted, " or ")), path...)
}

// childPath returns a new path: siblings must not share memory.
func childPath(path []string, key string) []string { return append(slices.Clip(path), key) }

func isName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

func isVisible(s string) bool {
	return s != "" && len(s) <= maxModelLength &&
		!strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsGraphic(r) || r == ' ' || r == '�' })
}

// baseURLFault describes what is wrong with a base URL, or returns "". It does not quote a URL
// with user information.
func baseURLFault(s string, insecure bool) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https":
		return "found no absolute http or https URL, expected one such as https://api.example.com/v1"
	case u.User != nil:
		return "found user information in the URL, expected none: a key goes into key"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return "found a query or a fragment in the URL, expected one that ends before /chat/completions"
	case wholeEndpoint(u.Path) != "":
		return fmt.Sprintf("found a URL that ends in %s, expected one that ends before it", wholeEndpoint(u.Path))
	case u.Scheme == "http" && !insecure && !netx.IsLoopbackHost(u.Hostname()):
		return fmt.Sprintf("found plain http to %q, expected https; or insecure_http: true, where the network between is trusted with the key and all that is said", u.Hostname())
	}
	return ""
}
