package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// Parameter says where an argument stands in the request of an http tool. It is an
// alias, so that a definition's parameters are an engine's without a copy.
type Parameter = struct {
	Argument string // a member of the arguments
	In       string // path, query, header or body
	Name     string // in the query or of the header; "" is the argument's
	Join     string // comma: a list is one value
}

const (
	maxTargetBytes = 8 << 10 // of the path and the query as they are sent
	maxFieldsBytes = 8 << 10 // of all header values that arguments give
)

// outline is what each attempt of a call sends.
type outline struct {
	method string
	target *url.URL
	header http.Header // of arguments
	body   []byte      // empty: none

	authorization string // of the tool, not of a caller; empty: none
}

// outlineOf makes the request of a call. Without a method it is a POST of the
// arguments as they are; with one, each argument has its place, and one that does
// not fit there is told to the model: nothing is sent.
func outlineOf(target *url.URL, call Call) (*outline, *refusal.Error) {
	if call.Run.Method == "" {
		return &outline{method: http.MethodPost, target: target, body: call.Arguments}, nil
	}
	arguments, err := members(call.Arguments)
	if err != nil {
		return nil, broken("the arguments that were judged are no JSON object")
	}
	f := filling{call: call, arguments: arguments, outline: outline{method: call.Run.Method, header: http.Header{}}}
	f.fill(target)
	switch {
	case f.refused != nil:
		return nil, f.refused
	case f.placed < len(arguments):
		return nil, unavailable("%s: an argument has no place in the request, so nothing was sent", call.Tool)
	}
	return &f.outline, nil
}

// bare tells of a request whose method has a body and which has none. It says so
// by its length, and the transport would then repeat it on its own.
func (o *outline) bare() bool { return len(o.body) == 0 && bodied(o.method) }

// bodied tells whether a method is expected to come with a body.
func bodied(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// request makes the request of one attempt.
func (o *outline) request(ctx context.Context, call Call) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, o.method, o.target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header = o.header.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	own := func(name, value string) {
		if _, taken := request.Header[name]; taken {
			err = fmt.Errorf("the header %s is the gateway's own", name)
		}
		request.Header.Set(name, value)
	}
	own("Accept", "application/json, text/*;q=0.5")
	own("Accept-Encoding", "identity")
	own("User-Agent", "callgate")
	if o.bare() {
		request.Body = http.NoBody
	} else {
		// Without GetBody, and with a body that is not read twice, the transport
		// cannot send the request again by itself. An empty one it does not send.
		request.Body = io.NopCloser(bytes.NewReader(o.body))
		request.ContentLength = int64(len(o.body))
	}
	if len(o.body) > 0 {
		own("Content-Type", "application/json")
	}
	if o.authorization != "" {
		own("Authorization", o.authorization)
	}
	if call.ID != "" {
		own("Callgate-Call-Id", call.ID)
		if call.Effect == "idempotent" {
			own("Idempotency-Key", call.ID)
		}
	}
	return request, err
}

// credential is the header for a credential, as it stands at its place now; without a
// place it is empty. No error holds any of it.
func credential(secrets func(place string) (string, error), place string) (string, error) {
	if place == "" {
		return "", nil
	}
	if secrets == nil {
		return "", errors.New("it asks for a credential, and there are none here")
	}
	secret, err := secrets(place)
	switch {
	case err != nil:
		return "", fmt.Errorf("its credential cannot be read: %w", err)
	case secret == "" || strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("its credential is empty, or holds what no bearer's token does")
	}
	return "Bearer " + secret, nil
}

// filling is a request that is being filled in.
type filling struct {
	call      Call
	arguments map[string]json.RawMessage
	placed    int // arguments that have their place
	outline
	refused *refusal.Error
}

// fill puts every argument in its place.
func (f *filling) fill(target *url.URL) {
	// The template is read as text: parsed, a brace would be an escape.
	template, fixed, _ := strings.Cut(f.call.Run.URL, "?")
	path := map[string]string{}
	var query strings.Builder
	query.WriteString(fixed)
	var fields int
	for _, p := range f.call.Run.Parameters {
		raw, given := f.arguments[p.Argument]
		if !given {
			if p.In == "path" {
				f.misfit(p, "it is missing, and a path needs it")
			}
			continue
		}
		f.placed++
		if p.In == "body" {
			f.body = raw
			continue
		}
		name := p.Name
		if name == "" {
			name = p.Argument
		}
		values := f.values(p, raw)
		switch p.In {
		case "path":
			path[p.Argument] = f.segment(p, values)
		case "query":
			for _, v := range values {
				if query.Len() > 0 {
					query.WriteByte('&')
				}
				query.WriteString(escape(name) + "=" + v)
			}
		case "header":
			for _, v := range values {
				fields += len(v)
				f.header.Set(name, f.field(p, v))
			}
		default:
			f.refused = unavailable("%s: an argument has a place that no request has", f.call.Tool)
		}
	}
	if fields > maxFieldsBytes {
		f.refuse("The arguments are too long for the headers of a request; send less in one call.")
	}
	if f.refused == nil {
		f.address(target, template, path, query.String())
	}
}

// address makes the URL, which stays that of the template but for what stands in
// braces and the members of the query.
func (f *filling) address(target *url.URL, template string, path map[string]string, query string) {
	var b strings.Builder
	rest := template
	for {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		value, known := path[name]
		if !closed || !known {
			f.refused = unavailable("%s: the URL has a part in braces that no argument fills", f.call.Tool)
			return
		}
		b.WriteString(value)
		rest = behind
	}
	made := b.String()
	if strings.Count(made, "/") != strings.Count(template, "/") || strings.ContainsAny(made, "?#") {
		f.refused = broken("an argument would change the path")
		return
	}
	if query != "" {
		made += "?" + query
	}
	u, err := url.Parse(made)
	switch {
	case err != nil || u.Scheme != target.Scheme || u.Host != target.Host || u.User != nil || u.Fragment != "":
		f.refused = broken("an argument would change where the request goes")
	case len(u.RequestURI()) > maxTargetBytes:
		f.refuse("The arguments are too long for an address; send less in one call.")
	default:
		f.target = u
	}
}

// values are the texts that an argument gives, escaped but for those of a header:
// one, one for each item of a list, or none for null, which is as good as absent.
func (f *filling) values(p Parameter, raw json.RawMessage) []string {
	texts, list, problem := plain(raw)
	write := escape
	if p.In == "header" {
		write = func(s string) string { return s }
	}
	switch {
	case problem != "":
	case p.In == "path" && len(texts) == 0:
		problem = "a path has no place for nothing"
	case list && p.Join == "" && p.In != "query":
		problem = "there is a place for one value, not for a list"
	case p.In == "path":
		problem = dividing(texts)
	}
	if list && p.Join != "" && problem == "" && strings.Contains(strings.Join(texts, ""), ",") {
		problem = "a comma in an item of this list would make it two"
	}
	if problem != "" {
		f.misfit(p, problem)
		return nil
	}
	for i, t := range texts {
		texts[i] = write(t)
	}
	if list && p.Join != "" && len(texts) > 0 {
		return []string{strings.Join(texts, ",")}
	}
	return texts
}

// segment is the one value that stands in a path.
func (f *filling) segment(p Parameter, values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	f.misfit(p, "a path has a place for one value")
	return ""
}

// field is a header's value.
func (f *filling) field(p Parameter, value string) string {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c > '~' {
			f.misfit(p, "a header holds visible ASCII characters, spaces and tabs only")
			return ""
		}
	}
	if strings.Trim(value, " \t") != value {
		f.misfit(p, "a header does not keep spaces around its value")
		return ""
	}
	return value
}

// misfit refuses an argument for its model, which may send another.
func (f *filling) misfit(p Parameter, why string) {
	f.refuse(fmt.Sprintf("The argument %q cannot be sent: %s. Nothing was done; send another value.", p.Argument, why))
}

func (f *filling) refuse(message string) {
	if f.refused == nil {
		f.refused = failed(message).WithCause(fmt.Errorf("%s: the arguments do not fit into the request, so nothing was sent", f.call.Tool))
	}
}

// members reads an object, and keeps the bytes of its values as they are.
func members(arguments []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(arguments))
	all := map[string]json.RawMessage{}
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("no object: %w", err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if _, twice := all[name]; twice || !ok {
			return nil, errors.New("a member stands twice")
		}
		all[name] = raw
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the object")
	}
	return all, nil
}

// plain reads what can stand outside of JSON: a string, a number digit by digit, a
// boolean, a list of them. null gives none.
func plain(raw json.RawMessage) (all []string, list bool, problem string) {
	if len(raw) > 0 && raw[0] == '[' {
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, true, "it cannot be read"
		}
		for _, item := range items {
			if item[0] == '[' || item[0] == 'n' {
				return nil, true, "an item of its list is a list or null"
			}
			one, _, problem := plain(item)
			if problem != "" {
				return nil, true, problem
			}
			all = append(all, one...)
		}
		return all, true, ""
	}
	switch {
	case len(raw) == 0 || raw[0] == '{':
		return nil, false, "an object has no form outside of JSON"
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, false, "it cannot be read"
		}
		return []string{s}, false, ""
	case raw[0] == 'n':
		return nil, false, ""
	}
	return []string{string(raw)}, false, ""
}

// What a server takes for a dot, a slash or a semicolon if it decodes once too often.
var (
	escapedDot       = regexp.MustCompile(`(?i)%(25)*2e`)
	escapedSlash     = regexp.MustCompile(`(?i)[/\\]|%(25)*(2f|5c)`)
	escapedSemicolon = regexp.MustCompile(`(?i)%(25)*3b`)
)

// dividing says why a value of a path may not stand there: it would be another path,
// at the latest where somebody decodes it. Many servers do so before they look which
// of their resources is meant, so that an escaped slash is one to them; and some
// leave away what stands behind a semicolon.
func dividing(values []string) string {
	for _, v := range values {
		switch {
		case v == "":
			return "a part of a path cannot be empty"
		case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7F }):
			return "a part of a path cannot hold control characters"
		case escapedSlash.MatchString(v):
			return "a part of a path cannot hold a slash or a backslash, escaped or not"
		}
		plain := escapedSemicolon.ReplaceAllString(escapedDot.ReplaceAllString(v, "."), ";")
		if part, _, _ := strings.Cut(plain, ";"); part == "." || part == ".." {
			return "a part of a path cannot be . or .."
		}
	}
	return ""
}

// escape writes everything but RFC 3986's unreserved characters as %XX, in paths
// and queries alike: every reader undoes it, and none finds structure in it.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
