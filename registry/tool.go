package registry

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// Tool is a definition as its author wrote it. Zero values stand for absent
// keys.
type Tool struct {
	Name        string `key:"name" of:"the tool's name" pattern:"^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$"`
	Version     string `key:"version" of:"a version such as 1.0.0, in quotes if it looks like a number" pattern:"^[0-9]+\\.[0-9]+\\.[0-9]+([-+].*)?$"` // "" is 0.0.0
	Description string `key:"description" of:"a description"`
	Kind        string `key:"kind"`   // an ACP ToolKind; "" is other
	Effect      string `key:"effect"` // read, idempotent or once; "" is once
	// InputSchema is a JSON Schema document and required: a tool that says
	// nothing of its arguments cannot be checked.
	InputSchema json.RawMessage `key:"input_schema" of:"a JSON Schema (2020-12)"`
	// OutputSchema is optional. Results are evaluated by it as written; it is never closed.
	OutputSchema json.RawMessage `key:"output_schema" of:"a JSON Schema (2020-12)"`
	// Open keeps additionalProperties and unevaluatedProperties as the author
	// wrote them at the root and in its branches; otherwise they are ignored there.
	Open bool `key:"open" of:"whether the root is left as its author closed it"`
	// Labels are what a call of it adds to its thread; nil: it states none, and adds those of tools that do not.
	Labels []Label  `key:"labels"`
	Run    tool.Run `key:"run"`
}

// Label is one that a call adds to its thread.
type Label struct {
	Name string `key:"label" of:"a label"`
	// UnlessHosts are hosts, as a project lists them: a call whose Argument names one of them does not add the
	// label. Any other does, also one in which no host can be read. Empty: every call adds it.
	UnlessHosts []string `key:"unless_hosts"`
	// Argument is the one that names the host, or a URL of it.
	Argument string `key:"argument" of:"the argument that names the host, or a URL of it"`
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
	defaultMaxAge      = 24 * time.Hour
	minMaxAge          = time.Second
	maxMaxAge          = 30 * 24 * time.Hour
)

// Fixed vocabularies; read only.
var (
	kinds    = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
	effects  = []string{"read", "idempotent", "once"}
	runTypes = []string{"http", "demo", "client", "mcp", "oxp", "callback", RunACP, RunCancelSubscription}
)

// Kinds are the kinds of tools.
func Kinds() []string { return slices.Clone(kinds) }

// Effects are the effects of tools.
func Effects() []string { return slices.Clone(effects) }

// RunTypes are the ways to run a tool.
func RunTypes() []string { return slices.Clone(runTypes) }

// Methods are the methods of HTTP that a tool of the type http can have.
func Methods() []string { return slices.Clone(methods) }

// Locations are the places of arguments in a request.
func Locations() []string { return slices.Clone(locations) }

// ValidName reports whether a name is within the registry's grammar.
func ValidName(name string) bool { return validName(name, maxNameBytes) }

func validName(name string, most int) bool {
	if name == "" || len(name) > most {
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
func complete(t Tool) (Tool, []*LoadError) { return completeNamed(t, maxNameBytes) }

// completeNamed is complete with another bound of the name.
func completeNamed(t Tool, maxName int) (Tool, []*LoadError) {
	var faults []*LoadError
	report := func(message string, field ...string) {
		faults = append(faults, &LoadError{Name: t.Name, Field: field, Message: message})
	}
	if !validName(t.Name, maxName) {
		report(fmt.Sprintf("found %s; expected a name of letters, digits, _ and - in parts joined by dots, at most %d bytes",
			parser.Quote(t.Name), maxName), "name")
	}
	if t.Version == "" {
		t.Version = defaultVersion
	}
	if _, ok := parseVersion(t.Version); !ok {
		report(fmt.Sprintf("found %s; expected a semantic version such as 1.0.0", parser.Quote(t.Version)), "version")
	}
	t.Kind = defaulted(t.Kind, defaultKind)
	checkOneOf(report, t.Kind, kinds, "kind")
	t.Effect = defaulted(t.Effect, defaultEffect)
	checkOneOf(report, t.Effect, effects, "effect")
	t.Run = completeRun(t.Run, report)
	checkRequest(t, report)
	checkDelegated(t, report)
	checkCancelSubscription(t, report)
	return t, faults
}

func defaulted(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func checkOneOf(report func(string, ...string), found string, expected []string, field ...string) {
	if !slices.Contains(expected, found) {
		report(fmt.Sprintf("found %s; expected one of %s", parser.Quote(found), strings.Join(expected, ", ")), field...)
	}
}

func completeRun(r tool.Run, report func(string, ...string)) tool.Run {
	if r.Type == "" {
		report("found nothing; expected one of "+strings.Join(runTypes, ", "), "run", "type")
	} else {
		checkOneOf(report, r.Type, runTypes, "run", "type")
	}
	remote := r.Type == "mcp" || r.Type == "oxp" || r.Type == "callback"
	switch {
	case r.Type == "mcp" && len(r.Command) > 0 && r.URL == "":
		if r.Command[0] == "" {
			report("found an empty program; expected a program and its arguments", "run", "command")
		}
	case r.Type == "http" || remote:
		if problem := checkURL(r.URL); problem != "" {
			report(problem, "run", "url")
		}
	case r.URL != "":
		report("found a url; expected none with the type "+parser.Quote(r.Type), "run", "url")
	}
	completeRemote(&r, remote, report)
	r.Parameters = slices.Clone(r.Parameters)
	if r.Timeout == 0 {
		r.Timeout = defaultTimeout
	}
	if r.Timeout < minTimeout || r.Timeout > maxTimeout {
		report(outside(r.Timeout, minTimeout, maxTimeout), "run", "timeout")
	}
	if r.MaxResultBytes == 0 {
		r.MaxResultBytes = defaultResultBytes
	}
	if r.MaxResultBytes < 1 || r.MaxResultBytes > maxResultBytes {
		report(fmt.Sprintf("found %d; expected 1 to %d", r.MaxResultBytes, maxResultBytes), "run", "max_result_bytes")
	}
	r.Addresses = slices.Clone(r.Addresses)
	checkAddresses(r.Addresses, report, "run", "addresses")
	return r
}

// checkAddresses reports entries that are neither an address nor a prefix.
func checkAddresses(addresses []string, report func(string, ...string), field ...string) {
	for i, a := range addresses {
		_, prefixErr := netip.ParsePrefix(a)
		_, addrErr := netip.ParseAddr(a)
		if prefixErr != nil && addrErr != nil {
			report(fmt.Sprintf("found %s; expected an address or a prefix such as 127.0.0.1/32", parser.Quote(a)),
				append(slices.Clone(field), fmt.Sprint(i))...)
		}
	}
}

// oxpTool is the id of a tool of OXP with the version that it is pinned to.
var oxpTool = regexp.MustCompile(`^[A-Za-z0-9_]+\.[A-Za-z0-9_]+@[0-9]+\.[0-9]+\.[0-9]+$`)

// completeRemote completes the fields of tools that another server lists.
func completeRemote(r *tool.Run, remote bool, report func(string, ...string)) {
	r.Command = slices.Clone(r.Command)
	if len(r.Command) > 0 && (r.Type != "mcp" || r.URL != "") {
		report("found a command; expected one only with the type mcp, instead of a url", "run", "command")
	}
	if remote && r.Tool == "" {
		report("found nothing; expected the tool's name on its server", "run", "tool")
	}
	if r.Type == "oxp" && r.Tool != "" && !oxpTool.MatchString(r.Tool) {
		report(fmt.Sprintf("found %s; expected the tool's id and exact version, such as Toolkit.Tool@1.0.0", parser.Quote(r.Tool)), "run",
			"tool")
	}
	if !remote && r.Type != RunACP && r.Tool != "" {
		report("found a tool; expected none with the type "+parser.Quote(r.Type), "run", "tool")
	}
	completeEnv(r, report)
	checkCredential(r, remote, report)
	completeAsks(r, report)
	if r.Type != "callback" {
		if r.MaxAge != 0 {
			report("found a max_age; expected one only with the type callback", "run", "max_age")
		}
		return
	}
	if r.MaxAge == 0 {
		r.MaxAge = defaultMaxAge
	}
	if r.MaxAge < minMaxAge || r.MaxAge > maxMaxAge {
		report(outside(r.MaxAge, minMaxAge, maxMaxAge), "run", "max_age")
	}
}

// completeAsks completes the kinds of questions that the tool may put to its caller.
func completeAsks(r *tool.Run, report func(string, ...string)) {
	r.InputRequests = slices.Clone(r.InputRequests)
	if len(r.InputRequests) > 0 && r.Type != "mcp" {
		report("found input_requests; expected them only with the type mcp", "run", "input_requests")
		return
	}
	for i, kind := range r.InputRequests {
		if slices.Contains(r.InputRequests[:i], kind) {
			report(fmt.Sprintf("found %s a second time; expected each kind of question once", parser.Quote(kind)), "run",
				"input_requests", fmt.Sprint(i))
			continue
		}
		checkOneOf(report, kind, tool.QuestionKinds(), "run", "input_requests", fmt.Sprint(i))
	}
}

// checkURL never repeats the URL: it may hold a secret.
func checkURL(raw string) string {
	const expected = "expected an absolute http or https URL without user info"
	if raw == "" {
		return "found nothing; " + expected
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "found an invalid URL; " + expected
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("found the scheme %s; %s", parser.Quote(u.Scheme), expected)
	case u.User != nil:
		return "found user info; " + expected
	case u.Hostname() == "" || u.Opaque != "":
		return "found no host; " + expected
	case u.Fragment != "":
		return "found a fragment; " + expected + " and without a fragment"
	}
	return ""
}
