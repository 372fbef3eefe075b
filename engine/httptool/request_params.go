package httptool

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// requestBuilder puts the arguments of a call into its request.
type requestBuilder struct {
	call      tool.Call
	arguments map[string]json.RawMessage
	placed    int // arguments that have their place
	requestTemplate
	refused *refusal.Error
}

// build puts every argument in its place.
func (f *requestBuilder) build(target *url.URL) {
	// The template is read as text: parsed, a brace would be an escape.
	template, fixed, _ := strings.Cut(f.call.Run.URL, "?")
	path := map[string]string{}
	var query strings.Builder
	query.Grow(len(fixed) + len(f.call.Arguments))
	query.WriteString(fixed)
	var fields int
	for _, p := range f.call.Run.Parameters {
		raw, given := f.arguments[p.Argument]
		if !given {
			if p.In == "path" {
				f.refuseArgument(p, "it is missing, and a path needs it")
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
		values := f.argumentValues(p, raw)
		switch p.In {
		case "path":
			path[p.Argument] = f.pathSegment(p, values)
		case "query":
			for _, v := range values {
				if query.Len() > 0 {
					query.WriteByte('&')
				}
				query.WriteString(escape(name))
				query.WriteByte('=')
				query.WriteString(v)
			}
		case "header":
			for _, v := range values {
				fields += len(v)
				f.header.Set(name, f.headerValue(p, v))
			}
		default:
			f.refused = refuse.Unavailable("%s: an argument has a place that no request has", f.call.Tool)
		}
	}
	if fields > maxFieldsBytes {
		f.refuse("The arguments are too long for the headers of a request; send less in one call.")
	}
	if f.refused == nil {
		f.buildURL(target, template, path, query.String())
	}
}

// buildURL makes the URL. It differs from the template only in the braces and the members
// of the query.
func (f *requestBuilder) buildURL(target *url.URL, template string, path map[string]string, query string) {
	var b strings.Builder
	b.Grow(len(template) + len(f.call.Arguments))
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
			f.refused = refuse.Unavailable("%s: the URL has a part in braces that no argument fills", f.call.Tool)
			return
		}
		b.WriteString(value)
		rest = behind
	}
	made := b.String()
	if strings.Count(made, "/") != strings.Count(template, "/") || strings.ContainsAny(made, "?#") {
		f.refused = refuse.Internal("an argument would change the path")
		return
	}
	if query != "" {
		made += "?" + query
	}
	u, err := url.Parse(made)
	switch {
	case err != nil || u.Scheme != target.Scheme || u.Host != target.Host || u.User != nil || u.Fragment != "":
		f.refused = refuse.Internal("an argument would change where the request goes")
	case len(u.RequestURI()) > maxTargetBytes:
		f.refuse("The arguments are too long for an address; send less in one call.")
	default:
		f.target = u
	}
}

// argumentValues are the values of an argument, escaped unless they are for a header: one,
// one for each item of a list, or none for null, which counts as absent.
func (f *requestBuilder) argumentValues(p tool.Parameter, raw json.RawMessage) []string {
	values, list, problem := primitive(raw)
	write := escape
	if p.In == "header" {
		write = func(s string) string { return s }
	}
	switch {
	case problem != "":
	case p.In == "path" && len(values) == 0:
		problem = "a path has no place for nothing"
	case list && len(values) == 0 && f.call.Effect != "read": // without it, the request may act on everything
		problem = "an empty list leaves no trace in a request; leave the argument out if you mean that"
	case list && p.Join == "" && p.In != "query":
		problem = "there is a place for one value, not for a list"
	case p.In == "path":
		problem = pathProblem(values)
	}
	if list && p.Join != "" && problem == "" && strings.Contains(strings.Join(values, ""), ",") {
		problem = "a comma in an item of this list would make it two"
	}
	if problem != "" {
		f.refuseArgument(p, problem)
		return nil
	}
	for i, t := range values {
		values[i] = write(t)
	}
	if list && p.Join != "" && len(values) > 0 {
		return []string{strings.Join(values, ",")}
	}
	return values
}

// pathSegment is the one value of a placeholder in a path.
func (f *requestBuilder) pathSegment(p tool.Parameter, values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	f.refuseArgument(p, "a path has a place for one value")
	return ""
}

// headerValue checks the value of a header.
func (f *requestBuilder) headerValue(p tool.Parameter, value string) string {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c > '~' {
			f.refuseArgument(p, "a header holds visible ASCII characters, spaces and tabs only")
			return ""
		}
	}
	if strings.Trim(value, " \t") != value {
		f.refuseArgument(p, "a header does not keep spaces around its value")
		return ""
	}
	return value
}

// refuseArgument refuses an argument for the model, which may send another.
func (f *requestBuilder) refuseArgument(p tool.Parameter, why string) {
	f.refuse(fmt.Sprintf("The argument %q cannot be sent: %s. Nothing was done; send another value.", p.Argument, why))
}

func (f *requestBuilder) refuse(message string) {
	if f.refused == nil {
		f.refused = refuse.Failed(message).WithCause(fmt.Errorf("%s: the arguments do not fit into the request, so nothing was sent",
			f.call.Tool))
	}
}
