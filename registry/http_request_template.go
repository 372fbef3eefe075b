package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// Fixed vocabularies; read only.
var (
	methods   = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	locations = []string{"path", "query", "header", "body"}

	// reservedHeaders cannot be set by an argument: they frame the message, carry
	// identity, override the request line, or are the gateway's own. So are names that
	// begin with one of reservedPrefixes.
	reservedHeaders = []string{
		"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "host", "expect", "via",
		"authorization", "cookie", "set-cookie", "forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
		"cf-connecting-ip", "fastly-client-ip", "x-host", "x-http-method", "x-http-method-override", "x-method-override", "x-rewrite-url",
		"accept", "accept-encoding", "user-agent", "idempotency-key", "traceparent", "tracestate", "baggage",
	}
	reservedPrefixes = []string{"content-", "proxy-", "sec-", "x-forwarded-", "x-original-", "x-remote-", "remote-", "callgate-"}
)

// ReservedHeader reports whether a name is of a header that no argument may give.
func ReservedHeader(name string) bool {
	// Some servers take _ for -.
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return slices.Contains(reservedHeaders, name) ||
		slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// sameHeader reports whether two names are of one header, for some servers: they take _ for -.
func sameHeader(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-"))
}

// ValidPlaceholder reports whether an argument's name may stand in braces in a path.
func ValidPlaceholder(name string) bool {
	for i := range len(name) {
		if !nameByte(name[i]) && name[i] != '.' {
			return false
		}
	}
	return name != "" && len(name) <= maxNameBytes
}

// requestTemplate is a URL with placeholders for arguments, and the places already taken.
type requestTemplate struct {
	report       func(message string, field ...string)
	placeholders []string // names in braces
	fixedQuery   url.Values
	taken        map[string]string // by place and name: the argument
}

// checkRequest reports the faults of the request template of an http tool: every
// argument that the schema declares has one place, and only these have.
func checkRequest(t Tool, report func(string, ...string)) {
	r := t.Run
	switch {
	case r.Type != "http" && r.Method != "":
		report("found a method; expected none with the type "+parser.Quote(r.Type), "run", "method")
	case r.Type != "http" && len(r.Parameters) > 0:
		report("found parameters; expected none with the type "+parser.Quote(r.Type), "run", "parameters")
	case r.Method == "" && len(r.Parameters) > 0:
		report("found parameters without a method; expected a method: "+strings.Join(methods, ", "), "run", "parameters")
	}
	if r.Type != "http" || r.Method == "" {
		return
	}
	checkOneOf(report, r.Method, methods, "run", "method")
	if t.Open {
		report("found open: true beside a method; expected none: each argument needs its place in the request", "open")
	}
	w := requestTemplate{report: report, taken: map[string]string{}}
	if !w.read(r.URL) {
		return
	}
	for _, p := range r.Parameters {
		w.place(p, r.Method)
	}
	for _, name := range w.placeholders {
		if w.taken["path "+name] == "" {
			report("found {"+name+"}, which no parameter fills; expected the parameter "+parser.Quote(name)+" with the place path", "run",
				"url")
		}
	}
	w.declared(t.InputSchema, r.Parameters)
}

// read reads the URL. Faults apart from its braces have been reported.
func (w *requestTemplate) read(raw string) bool {
	if checkURL(raw) != "" {
		return false
	}
	before, query, _ := strings.Cut(raw, "?")
	_, path, _ := strings.Cut(before, "://")
	if at := strings.IndexByte(path, '/'); at >= 0 {
		path = path[at:]
	} else {
		path = ""
	}
	const expected = "; expected a path as it is sent, escaped, with arguments as {name}"
	for segment := range strings.SplitSeq(path, "/") {
		literal := ""
		for rest := segment; ; {
			text, after, opened := strings.Cut(rest, "{")
			literal += text
			if !opened {
				break
			}
			name, behind, closed := strings.Cut(after, "}")
			if !closed || !ValidPlaceholder(name) {
				w.report("found braces in the path that hold no name of letters, digits, _, - and dots"+expected, "run", "url")
				return false
			}
			if slices.Contains(w.placeholders, name) {
				w.report("found {"+name+"} a second time; expected each argument once", "run", "url")
				return false
			}
			w.placeholders = append(w.placeholders, name)
			rest = behind
		}
		if plain, err := url.PathUnescape(literal); err != nil || !urlSafe(literal, "!$&'()*+,;=:@") || plain == "." || plain == ".." {
			w.report("found characters in the path that have to be escaped, or a part . or .."+expected, "run", "url")
			return false
		}
	}
	var err error
	if w.fixedQuery, err = url.ParseQuery(query); err != nil || !urlSafe(query, "!$&'()*+,=:@/?") {
		w.report("found characters in the query that have to be escaped; expected it as it is sent, and arguments as parameters", "run",
			"url")
		return false
	}
	return true
}

// urlSafe reports whether a text needs no escaping in a URL: letters, digits, -._~,
// escapes, and the further characters in more.
func urlSafe(s, more string) bool {
	for i := range len(s) {
		if c := s[i]; !nameByte(c) && strings.IndexByte(".~%", c) < 0 && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

// place checks where one argument is put.
func (w *requestTemplate) place(p tool.Parameter, method string) {
	report := func(format string, args ...any) {
		w.report(fmt.Sprintf(format, args...), "run", "parameters", p.Argument)
	}
	name := p.Name
	if name == "" {
		name = p.Argument
	}
	key := p.In + " " + name
	switch p.In {
	case "path":
		key = p.In + " " + p.Argument
		if !slices.Contains(w.placeholders, p.Argument) {
			report("found the place path; expected {%s} in the path of the url", text.Shorten(p.Argument, 64))
		}
	case "query":
		if name == "" {
			report("found no name; expected one for the query")
		}
		if w.fixedQuery.Has(name) {
			report("found %s, which stands in the url already; expected each name of the query once", parser.Quote(name))
		}
	case "header":
		key = p.In + " " + strings.ReplaceAll(strings.ToLower(name), "_", "-")
		switch {
		case !headerName(name):
			report("found %s; expected the name of a header", parser.Quote(name))
		case ReservedHeader(name):
			report("found the header %s, which the gateway sets itself; expected another", parser.Quote(name))
		}
	case "body":
		key = p.In
		if method == "GET" || method == "HEAD" {
			report("found the place body; expected none with the method %s", method)
		}
	default:
		report("found the place %s; expected one of %s", parser.Quote(p.In), strings.Join(locations, ", "))
		return
	}
	if p.Name != "" && (p.In == "path" || p.In == "body") {
		report("found a name; expected one only in query and header")
	}
	if p.Join != "" && (p.Join != "comma" || p.In == "body") {
		report("found join: %s; expected comma, and none with the place body", text.Shorten(p.Join, 64))
	}
	if other, twice := w.taken[key]; twice {
		report("found the place of the argument %s; expected each place for one argument", parser.Quote(other))
	}
	w.taken[key] = p.Argument
}

func headerName(name string) bool {
	for i := range len(name) {
		if !nameByte(name[i]) && strings.IndexByte("!#$%&'*+.^`|~", name[i]) < 0 {
			return false
		}
	}
	return name != ""
}

// declared compares the parameters with the properties at the root of the schema. A
// schema that cannot be read was reported, or will be.
func (w *requestTemplate) declared(schema json.RawMessage, parameters []tool.Parameter) {
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil {
		return
	}
	var (
		properties map[string]json.RawMessage
		required   []string
	)
	_ = json.Unmarshal(root["properties"], &properties) // what is none declares nothing
	_ = json.Unmarshal(root["required"], &required)
	if _, has := root["patternProperties"]; has {
		w.report("found patternProperties beside a method; expected none at the root: each argument needs its place in the request", "input_schema")
	}
	placed := map[string]bool{}
	for _, p := range parameters {
		if placed[p.Argument] {
			w.report("found a second place for the argument; expected one", "run", "parameters", p.Argument)
		}
		placed[p.Argument] = true
		if _, ok := properties[p.Argument]; !ok {
			w.report("found a parameter that input_schema does not declare; expected it among the properties at its root", "run", "parameters", p.Argument)
		} else if p.In == "path" && !slices.Contains(required, p.Argument) {
			w.report("found a part of the path that input_schema does not require; expected it in required at its root", "run", "parameters", p.Argument)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !placed[name] {
			w.report("found no place for the argument "+parser.Quote(name)+"; expected it among the parameters", "run", "parameters")
		}
	}
}
