package toolimport

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// OpenAPIOptions holds settings that the OpenAPI document does not have, or that replace
// its own.
type OpenAPIOptions struct {
	Prefix string // of every name
	// URL is the server; empty is the one that the document states.
	URL string
	// Addresses are those that the tools may connect to; none means public ones.
	Addresses []string
}

// OpenAPI translates the operations of an OpenAPI document (3.0, 3.1 or 3.2, JSON or YAML)
// into a tool file. Each is a tool of type http whose arguments are its parameters and, as
// one member, its body. GET and HEAD get the effect read, PUT and DELETE idempotent, others
// once. Operations without a strict form are left out with the reason; optional parts
// without one are left out of their operation, which Changed reports, together with
// operations that need credentials.
//
// The error is Faults if the document is invalid, or does not name its server.
func OpenAPI(file string, data []byte, o OpenAPIOptions) (*Result, error) {
	r := document.Report{Unlimited: true}
	root, ok := document.ReadExternal(&r, file, data)
	if !ok {
		return nil, r.Err()
	}
	d := &openAPI{root: root, importer: newImporter(&r), options: o, budget: maxImported, credentialsOf: map[string][]string{}, typesOf: map[*yaml.Node]typeSet{}}
	return d.translate()
}

// maxImported bounds what all schemas of an import hold together, and
// maxOperation what one of them does.
const (
	maxImported  = 500_000
	maxOperation = 50_000
)

// openAPI is an OpenAPI document that is being translated.
type openAPI struct {
	root          document.Node
	importer      *importer
	options       OpenAPIOptions
	is30          bool   // 3.0: its schemas are not yet JSON Schema
	base          string // the URL before every path
	budget        int    // of maxImported
	credentialsOf map[string][]string
	typesOf       map[*yaml.Node]typeSet // by schema, as far as they were asked for
}

func (d *openAPI) translate() (*Result, error) {
	if !d.version() || !d.server() {
		return nil, d.importer.report.Err()
	}
	_, paths, ok := d.root.Child("paths")
	if !ok || !paths.IsMapping() {
		d.root.Fail("found no paths; expected a mapping of paths to what can be done there")
		return nil, d.importer.report.Err()
	}
	paths.Members("paths", d.path)
	im, err := d.importer.finish()
	if err == nil {
		d.credentials()
	}
	return im, err
}

var versions = regexp.MustCompile(`^3\.[012]\.[0-9]+$`)

func (d *openAPI) version() bool {
	if !d.root.IsMapping() {
		return d.root.Fail("found %s; expected an OpenAPI document", d.root.TypeName())
	}
	if _, old, ok := d.root.Child("swagger"); ok {
		return old.Fail("found Swagger %s; expected OpenAPI 3, which converters make of it", old.Excerpt())
	}
	_, version, ok := d.root.Child("openapi")
	if !ok {
		return d.root.Fail("found no member openapi; expected an OpenAPI document, with openapi: 3.0.x, 3.1.x or 3.2.x")
	}
	if !version.IsString() || !versions.MatchString(version.Value) {
		return version.Fail("found %s; expected the version 3.0.x, 3.1.x or 3.2.x", version.Describe())
	}
	d.is30 = strings.HasPrefix(version.Value, "3.0.")
	const base = "https://spec.openapis.org/oas/3."
	if _, dialect, ok := d.root.Child("jsonSchemaDialect"); ok && !strings.HasPrefix(dialect.Value, base) && !isDraft2020(dialect.Value) {
		return dialect.Fail("found %s; expected schemas of JSON Schema 2020-12", dialect.Describe())
	}
	return true
}

func isDraft2020(uri string) bool {
	return strings.TrimSuffix(uri, "#") == "https://json-schema.org/draft/2020-12/schema"
}

// server finds the URL before every path, and checks the addresses.
func (d *openAPI) server() bool {
	for _, a := range d.options.Addresses {
		_, prefix := netip.ParsePrefix(a)
		if _, address := netip.ParseAddr(a); prefix != nil && address != nil {
			return d.root.Fail("--addresses: found %q; expected an address or a prefix such as 127.0.0.1/32", a)
		}
	}
	if d.options.URL != "" {
		base, problem := baseURL(d.options.URL)
		if problem != "" {
			return d.root.Fail("--url: %s", problem)
		}
		d.base = base
		return true
	}
	_, servers, ok := d.root.Child("servers")
	if !ok {
		return d.root.Fail("found no servers; expected one: state it with --url")
	}
	base, problem := soleServer(servers)
	if problem != "" {
		return servers.Fail("%s: choose it with --url", problem)
	}
	d.base = base
	return true
}

// soleServer reads a list of one server.
func soleServer(n document.Node) (base, problem string) {
	if !n.IsList() || len(n.Content) != 1 {
		return "", fmt.Sprintf("found %d servers; expected one", len(n.Content))
	}
	server := n.With(n.Content[0])
	_, raw, ok := server.Child("url")
	if !ok || !raw.IsString() {
		return "", "found a server without a URL; expected an absolute one"
	}
	full := raw.Value
	if _, variables, ok := server.Child("variables"); ok && variables.IsMapping() {
		variables.Members("variables", func(key, value document.Node) {
			if _, standard, ok := value.Child("default"); ok && standard.Kind == yaml.ScalarNode {
				full = strings.ReplaceAll(full, "{"+key.Value+"}", standard.Value)
			}
		})
	}
	return baseURL(full)
}

// baseURL takes a URL that paths can be appended to.
func baseURL(raw string) (base, problem string) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(raw, "?#{}") {
		return "", "found what is not the absolute URL of a server; expected http or https, without user info, a query or a fragment"
	}
	return strings.TrimSuffix(raw, "/"), ""
}

// path translates what can be done at one path.
func (d *openAPI) path(key, value document.Node) {
	if strings.HasPrefix(key.Value, "x-") {
		return
	}
	item, problem := d.follow(value)
	switch {
	case problem != "":
		value.Fail("%s: %s", key.Value, problem)
		return
	case !item.IsMapping():
		value.Fail("%s: found %s; expected what can be done at the path", key.Value, value.TypeName())
		return
	case !strings.HasPrefix(key.Value, "/"):
		key.Fail("found the path %s; expected one that starts with /", key.Excerpt())
		return
	}
	item.Members("methods", func(method, stated document.Node) {
		name := method.Value
		switch {
		case slices.Contains([]string{"get", "head", "post", "put", "patch", "delete"}, name):
			d.importer.add(method, func(_ document.Node, t *importedTool) {
				o := &operation{openAPI: d, tool: t, label: strings.ToUpper(name) + " " + key.Value, method: strings.ToUpper(name), path: key.Value, item: item, node: stated}
				o.read()
			})
		case slices.Contains([]string{"options", "trace", "query", "additionalOperations"}, name):
			method.Fail("%s %s: found a method that no tool is made of; expected get, head, post, put, patch or delete", strings.ToUpper(name), key.Value)
		case slices.Contains([]string{"summary", "description", "servers", "parameters", "$ref"}, name), strings.HasPrefix(name, "x-"):
		default:
			method.Fail("%s: found the unknown key %s; expected a method, summary, description, servers or parameters", key.Value, method.Excerpt())
		}
	})
}

// maxHops bounds references to references.
const maxHops = 32

// follow resolves a value that may be a reference.
func (d *openAPI) follow(n document.Node) (target document.Node, problem string) {
	for range maxHops {
		_, ref, ok := n.Child("$ref")
		if !ok || !n.IsMapping() {
			return n, ""
		}
		if n, _, problem = d.find(ref); problem != "" {
			return document.Node{}, problem
		}
	}
	return document.Node{}, "found references that lead to one another; expected what they stand for"
}

// find returns the place that a reference leads to, and its pointer.
func (d *openAPI) find(ref document.Node) (target document.Node, pointer, problem string) {
	if !ref.IsString() {
		return document.Node{}, "", "found " + ref.TypeName() + " for a $ref; expected a reference such as #/components/schemas/name"
	}
	fragment, local := strings.CutPrefix(ref.Value, "#")
	if !local {
		return document.Node{}, "", "found the $ref " + ref.Excerpt() + ", which leads to another document; expected a place of this one: nothing is fetched"
	}
	pointer, err := url.PathUnescape(fragment)
	target = d.root
	ok := err == nil && strings.HasPrefix(pointer, "/")
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if ok {
			_, target, ok = target.Child(refusal.UnescapePointer(token))
		}
	}
	if !ok {
		return document.Node{}, "", "found the $ref " + ref.Excerpt() + ", which leads nowhere; expected a place of this document"
	}
	return target, pointer, ""
}

// credentials reports the imported tools that need a credential.
func (d *openAPI) credentials() {
	schemes := map[string][]string{}
	var order []string
	for _, tool := range d.importer.out.Names {
		for _, scheme := range d.credentialsOf[tool] {
			if len(schemes[scheme]) == 0 {
				order = append(order, scheme)
			}
			schemes[scheme] = append(schemes[scheme], tool)
		}
	}
	slices.Sort(order)
	for _, scheme := range order {
		at, what, bearer := d.scheme(scheme)
		tools := schemes[scheme]
		said := strings.Join(tools[:min(len(tools), 3)], ", ")
		if len(tools) > 3 {
			said += fmt.Sprintf(" and %d more", len(tools)-3)
		}
		how := "the gateway does not send it"
		if bearer {
			how = "state in run.credential where it stands (env:NAME or file:PATH), and it is sent as Authorization: Bearer"
		}
		d.importer.out.Changed = append(d.importer.out.Changed, &document.Fault{
			File: at.File, Line: at.Line, Column: at.Column,
			Message: fmt.Sprintf("%s: found that the credential %q (%s) is asked for, and no argument holds it; %s", said, scheme, what, how),
		})
	}
}

// scheme returns the kind of a security scheme, and whether its credential is sent as
// Authorization: Bearer.
func (d *openAPI) scheme(name string) (at document.Node, what string, bearer bool) {
	n := d.root
	for _, key := range []string{"components", "securitySchemes", name} {
		next, value, ok := n.Child(key)
		if !ok {
			return d.root, "of which the document says nothing", false
		}
		at, n = next, value
	}
	n, problem := d.follow(n)
	if problem != "" {
		return at, "of which the document says nothing", false
	}
	member := func(key string) string {
		_, value, _ := n.Child(key)
		if value.Node == nil {
			return ""
		}
		return value.Value
	}
	kind := member("type")
	switch kind {
	case "http":
		return at, "http " + member("scheme"), strings.EqualFold(member("scheme"), "bearer")
	case "oauth2", "openIdConnect":
		return at, kind, true
	case "apiKey":
		return at, "an API key in " + member("in") + " " + member("name"), false
	}
	return at, cmp.Or(kind, "of no type"), false
}

// isAPIKey reports whether a security scheme puts an API key into a parameter.
func (d *openAPI) isAPIKey(in, name string) bool {
	_, components, ok := d.root.Child("components")
	if !ok {
		return false
	}
	_, schemes, ok := components.Child("securitySchemes")
	if !ok || !schemes.IsMapping() {
		return false
	}
	found := false
	schemes.Members("security schemes", func(_, value document.Node) {
		scheme, problem := d.follow(value)
		if problem != "" {
			return
		}
		_, kind, isKey := scheme.Child("type")
		_, place, placed := scheme.Child("in")
		_, called, named := scheme.Child("name")
		if isKey && placed && named && kind.Value == "apiKey" && place.Value == in {
			found = found || called.Value == name || in == "header" && strings.EqualFold(called.Value, name)
		}
	})
	return found
}

// toolName makes a name of the registry's grammar: / and : become dots, and runs of
// other characters that it does not have _.
func toolName(s string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.NewReplacer("/", ".", ":", ".").Replace(s), ".") {
		words := strings.FieldsFunc(part, func(r rune) bool { return !registry.ValidName(string(r)) })
		if len(words) > 0 {
			parts = append(parts, strings.Join(words, "_"))
		}
	}
	return strings.Join(parts, ".")
}
