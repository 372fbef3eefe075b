package registry

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Tool is a definition as its author wrote it. Zero values stand for absent
// keys.
type Tool struct {
	Name        string
	Version     string // "" is 0.0.0
	Description string
	Kind        string // an ACP ToolKind; "" is other
	Effect      string // read, idempotent or once; "" is once
	// InputSchema is a JSON Schema document and required: a tool that says
	// nothing of its arguments cannot be judged.
	InputSchema json.RawMessage
	// OutputSchema is optional. It is checked and judged as written, never closed.
	OutputSchema json.RawMessage
	// Open keeps additionalProperties and unevaluatedProperties as the author
	// wrote them at the root and in its branches; otherwise they are ignored there.
	Open bool
	Run  Run
}

// Run says how a tool is run, as far as it is syntax.
type Run struct {
	Type           string        // http, demo or client; required
	URL            string        // http only: absolute http or https, no user info
	Timeout        time.Duration // 1 ms to 10 min; 0 is 10 s
	MaxResultBytes int64         // 1 B to 1 GiB; 0 is 1 MiB
	Addresses      []string      // prefixes or addresses that may be connected to
}

const (
	maxNameBytes       = 64
	defaultVersion     = "0.0.0"
	defaultKind        = "other"
	defaultEffect      = "once"
	defaultTimeout     = 10 * time.Second
	minTimeout         = time.Millisecond
	maxTimeout         = 10 * time.Minute
	defaultResultBytes = 1 << 20
	maxResultBytes     = 1 << 30
)

// Fixed vocabularies; read only.
var (
	kinds    = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
	effects  = []string{"read", "idempotent", "once"}
	runTypes = []string{"http", "demo", "client"}
)

// ValidName tells whether a name is within the registry's grammar.
func ValidName(name string) bool {
	if name == "" || len(name) > maxNameBytes {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" {
			return false
		}
		for i := range len(part) {
			if !nameByte(part[i]) {
				return false
			}
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// complete returns the definition with its defaults, and what is wrong with it
// apart from its schemas.
func complete(t Tool) (Tool, []*LoadError) {
	var faults []*LoadError
	report := func(message string, field ...string) {
		faults = append(faults, &LoadError{Name: t.Name, Field: field, Message: message})
	}
	if !ValidName(t.Name) {
		report(fmt.Sprintf("found %s; expected a name of letters, digits, _ and - in parts joined by dots, at most %d bytes", quote(t.Name), maxNameBytes), "name")
	}
	if t.Version == "" {
		t.Version = defaultVersion
	}
	if _, ok := parseVersion(t.Version); !ok {
		report(fmt.Sprintf("found %s; expected a semantic version such as 1.0.0", quote(t.Version)), "version")
	}
	t.Kind = defaulted(t.Kind, defaultKind)
	oneOf(report, t.Kind, kinds, "kind")
	t.Effect = defaulted(t.Effect, defaultEffect)
	oneOf(report, t.Effect, effects, "effect")
	t.Run = completeRun(t.Run, report)
	return t, faults
}

func defaulted(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func oneOf(report func(string, ...string), found string, expected []string, field ...string) {
	if !slices.Contains(expected, found) {
		report(fmt.Sprintf("found %s; expected one of %s", quote(found), strings.Join(expected, ", ")), field...)
	}
}

func completeRun(r Run, report func(string, ...string)) Run {
	if r.Type == "" {
		report("found nothing; expected one of "+strings.Join(runTypes, ", "), "run", "type")
	} else {
		oneOf(report, r.Type, runTypes, "run", "type")
	}
	switch {
	case r.Type == "http":
		if problem := checkURL(r.URL); problem != "" {
			report(problem, "run", "url")
		}
	case r.URL != "":
		report("found a url; expected none unless the type is http", "run", "url")
	}
	if r.Timeout == 0 {
		r.Timeout = defaultTimeout
	}
	if r.Timeout < minTimeout || r.Timeout > maxTimeout {
		report(fmt.Sprintf("found %s; expected %s to %s", r.Timeout, minTimeout, maxTimeout), "run", "timeout")
	}
	if r.MaxResultBytes == 0 {
		r.MaxResultBytes = defaultResultBytes
	}
	if r.MaxResultBytes < 1 || r.MaxResultBytes > maxResultBytes {
		report(fmt.Sprintf("found %d; expected 1 to %d", r.MaxResultBytes, maxResultBytes), "run", "max_result_bytes")
	}
	r.Addresses = slices.Clone(r.Addresses)
	for i, a := range r.Addresses {
		_, prefixErr := netip.ParsePrefix(a)
		_, addrErr := netip.ParseAddr(a)
		if prefixErr != nil && addrErr != nil {
			report(fmt.Sprintf("found %s; expected an address or a prefix such as 127.0.0.1/32", quote(a)), "run", "addresses", fmt.Sprint(i))
		}
	}
	return r
}

// checkURL never repeats the URL: it may hold what should not be printed.
func checkURL(raw string) string {
	const expected = "expected an absolute http or https URL without user info"
	if raw == "" {
		return "found nothing; " + expected
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "found what is not a URL; " + expected
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("found the scheme %s; %s", quote(u.Scheme), expected)
	case u.User != nil:
		return "found user info; " + expected
	case u.Hostname() == "" || u.Opaque != "":
		return "found no host; " + expected
	case u.Fragment != "":
		return "found a fragment; " + expected + " and without a fragment"
	}
	return ""
}
