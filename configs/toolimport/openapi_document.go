package toolimport

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// maxImported bounds what all schemas of an import hold together, and
// maxOperation what one of them does.
const (
	maxImported  = 500_000
	maxOperation = 50_000

	maxOperations = 10_000 // that are translated: each takes about half a millisecond and 50 kB
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
	given         map[int]bool           // the credentials of the options that some tool has got
	typesOf       map[*yaml.Node]typeSet // by schema, as far as they were asked for

	operations, tags, paths *filter
	chosen                  int // operations that all filters choose
}

func isDraft2020(uri string) bool {
	return strings.TrimSuffix(uri, "#") == "https://json-schema.org/draft/2020-12/schema"
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
		return document.Node{}, "", "found the $ref " + ref.Excerpt() +
			", which leads to another document; expected a place of this one: nothing is fetched"
	}
	pointer, err := url.PathUnescape(fragment)
	target, ok := d.root.Resolve(pointer)
	if !ok || err != nil || !strings.HasPrefix(pointer, "/") {
		return document.Node{}, "", "found the $ref " + ref.Excerpt() + ", which leads nowhere; expected a place of this document"
	}
	return target, pointer, ""
}

// scheme returns the kind of a security scheme, and whether its credential is sent as
// Authorization: Bearer.
func (d *openAPI) scheme(name string) (at document.Node, what string, form *tool.Credential) {
	pointer := refusal.Pointer("components", "securitySchemes", name)
	n, ok := d.root.Resolve(pointer)
	if !ok {
		return d.root, "of which the document says nothing", nil
	}
	at = d.root.At(pointer)
	n, problem := d.follow(n)
	if problem != "" {
		return at, "of which the document says nothing", nil
	}
	kind := valueAt(n, "type")
	switch kind {
	case "http":
		scheme := valueAt(n, "scheme")
		switch strings.ToLower(scheme) {
		case "bearer":
			form = &tool.Credential{In: tool.InBearer}
		case "basic":
			form = &tool.Credential{In: tool.InBasic}
		}
		return at, "http " + scheme, form
	case "oauth2", "openIdConnect":
		return at, kind, &tool.Credential{In: tool.InBearer}
	case "apiKey":
		if valueAt(n, "in") == "header" {
			form = &tool.Credential{In: tool.InHeader, Name: valueAt(n, "name")}
		}
		return at, "an API key in " + valueAt(n, "in") + " " + valueAt(n, "name"), form
	}
	return at, cmp.Or(kind, "of no type"), nil
}

// isAPIKey reports whether a security scheme puts an API key into a parameter.
func (d *openAPI) isAPIKey(in, name string) bool {
	schemes, ok := d.root.Resolve("/components/securitySchemes")
	if !ok || !schemes.IsMapping() {
		return false
	}
	found := false
	schemes.Members("security schemes", func(_, value document.Node) {
		scheme, problem := d.follow(value)
		if problem == "" && valueAt(scheme, "type") == "apiKey" && valueAt(scheme, "in") == in {
			called := valueAt(scheme, "name")
			found = found || called == name || in == "header" && strings.EqualFold(called, name)
		}
	})
	return found
}

// valueAt returns the scalar of a member as it is written, or "".
func valueAt(n document.Node, key string) string {
	if _, value, ok := n.Child(key); ok {
		return value.Value
	}
	return ""
}

// soleServer reads a list of one server, whose URL may be relative to where the document is from.
func soleServer(n document.Node, location *url.URL) (base, problem string) {
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
	if relative, err := url.Parse(full); err == nil && location != nil {
		full = location.ResolveReference(relative).String()
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

// OpenAPIOptions holds settings that the OpenAPI document does not have, or that replace
// its own.
type OpenAPIOptions struct {
	Prefix string // of every name
	// URL is the server; empty is the one that the document states.
	URL string
	// Location is where the document was fetched from, which its servers may be relative to; nil is a file.
	Location *url.URL
	// Addresses are those that the tools may connect to; none means public ones.
	Addresses []string
	// Operations, Tags, Paths and Only choose operations: by an operationId, by a tag, by a pattern of the path, in
	// which * stands for one segment or a part of it and /** at the end for all below, and by a pattern of the tool's
	// name, the prefix included. An operation is imported where each that is not empty has a value that fits. A
	// value that fits nothing is an error.
	Operations, Tags, Paths, Only []string
	// Credentials are the places of credentials, each [SCHEME=]env:NAME or [SCHEME=]file:PATH: tools whose operations
	// ask for one security scheme alone get it as that scheme sends it.
	Credentials []string
}

// typeSet are the kinds of a schema.
type typeSet struct {
	kinds []string
	ok    bool
}
