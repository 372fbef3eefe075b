package toolimport

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/tool"
)

// OpenAPI translates the operations of an OpenAPI document (3.0, 3.1 or 3.2, JSON or YAML)
// into a tool file. Each is a tool of type http whose arguments are its parameters and, as
// one member, its body. GET and HEAD get the effect read, PUT and DELETE idempotent, others
// once. Operations without a strict form are left out with the reason; optional parts
// without one are left out of their operation, which Changed reports, together with
// operations that need credentials.
//
// The error is Faults if the document is invalid, or does not name its server.
func OpenAPI(file string, data []byte, o OpenAPIOptions) (*Result, error) {
	if err := cmp.Or(checkGlobs("only", o.Only), checkGlobs("path", o.Paths)); err != nil {
		return nil, err
	}
	r := document.Report{Unlimited: true}
	root, ok := document.ReadExternal(&r, file, data)
	if !ok {
		return nil, r.Err()
	}
	return newOpenAPI(root, &r, o, maxImported).translate()
}

func newOpenAPI(root document.Node, r *document.Report, o OpenAPIOptions, budget int) *openAPI {
	return &openAPI{
		root: root, importer: newImporter(r, o.Only), options: o, budget: budget,
		credentialsOf: map[string][]string{}, given: map[int]bool{}, typesOf: map[*yaml.Node]typeSet{},
		operations: newFilter("operation", o.Operations, equal), tags: newFilter("tag", o.Tags, equal),
		paths: newFilter("path", o.Paths, matchPath),
	}
}

func (d *openAPI) translate() (*Result, error) {
	if err := d.checkCredentials(false); err != nil {
		return nil, err
	}
	if !d.version() || !d.server() {
		return nil, d.importer.report.Err()
	}
	_, paths, ok := d.root.Child("paths")
	if !ok || !paths.IsMapping() {
		d.root.Fail("found no paths; expected a mapping of paths to what can be done there")
		return nil, d.importer.report.Err()
	}
	paths.Members("paths", d.path)
	filters := []*filter{d.operations, d.tags, d.paths, d.importer.only}
	for _, f := range filters {
		if err := f.err(d.root.File); err != nil {
			return nil, err
		}
	}
	if d.chosen > maxOperations {
		return nil, fmt.Errorf("%s has %d operations to import; expected at most %d: choose some with --tag, --path, --operation or --only",
			d.root.File, d.chosen, maxOperations)
	}
	if d.chosen == 0 && slices.ContainsFunc(filters, (*filter).active) {
		return nil, fmt.Errorf("no operation of %s is chosen by all of --operation, --tag, --path and --only together", d.root.File)
	}
	im, err := d.importer.finish()
	if err != nil {
		return nil, err
	}
	d.credentials()
	im.Server = d.base
	return im, d.checkCredentials(true)
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

// server finds the URL before every path, and checks the addresses.
func (d *openAPI) server() bool {
	for _, a := range d.options.Addresses {
		_, prefix := netip.ParsePrefix(a)
		if _, address := netip.ParseAddr(a); prefix != nil && address != nil {
			return d.failFlag("--addresses", fmt.Sprintf("found %q; expected an address or a prefix such as 127.0.0.1/32", a))
		}
	}
	if d.options.URL != "" {
		base, problem := baseURL(d.options.URL)
		if problem != "" {
			return d.failFlag("--url", problem)
		}
		d.base = base
		return true
	}
	_, servers, ok := d.root.Child("servers")
	if !ok && d.options.Location != nil {
		base, problem := baseURL(d.options.Location.ResolveReference(&url.URL{Path: "/"}).String())
		d.base = base
		return problem == "" || d.root.Fail("%s: choose it with --url", problem)
	}
	if !ok {
		return d.root.Fail("found no servers; expected one: state it with --url")
	}
	base, problem := soleServer(servers, d.options.Location)
	if problem != "" {
		return servers.Fail("%s: choose it with --url", problem)
	}
	d.base = base
	return true
}

// failFlag reports what is wrong with a flag, and not with the document.
func (d *openAPI) failFlag(flag, problem string) bool {
	d.root.Report.Add(&document.Fault{File: flag, Message: problem})
	return false
}

// path translates what can be done at one path.
func (d *openAPI) path(key, value document.Node) {
	if strings.HasPrefix(key.Value, "x-") {
		return
	}
	chosen := d.paths.chooses(key.Value)
	// A fault of the path itself is of interest where all of the path is asked for.
	fail := document.Node.Fail
	if !chosen || d.operations.active() || d.tags.active() || d.importer.only.active() {
		fail = func(document.Node, string, ...any) bool { return false }
	}
	item, problem := d.follow(value)
	switch {
	case problem != "":
		fail(value, "%s: %s", key.Value, problem)
		return
	case !item.IsMapping():
		fail(value, "%s: found %s; expected what can be done at the path", key.Value, value.TypeName())
		return
	case !strings.HasPrefix(key.Value, "/"):
		fail(key, "found the path %s; expected one that starts with /", key.Excerpt())
		return
	}
	item.Members("methods", func(method, stated document.Node) {
		name := method.Value
		switch {
		case slices.Contains(methods, name):
			o := &operation{openAPI: d, label: strings.ToUpper(name) + " " + key.Value, method: strings.ToUpper(name), path: key.Value,
				item: item, node: stated}
			if !d.chooses(o) || !chosen {
				return
			}
			if d.chosen++; d.chosen > maxOperations {
				return
			}
			d.importer.add(method, func(_ document.Node, t *importedTool) {
				o.tool = t
				o.read()
			})
		case slices.Contains([]string{"options", "trace", "query", "additionalOperations"}, name):
			fail(method, "%s %s: found a method that no tool is made of; expected get, head, post, put, patch or delete",
				strings.ToUpper(name), key.Value)
		case slices.Contains([]string{"summary", "description", "servers", "parameters", "$ref"}, name), strings.HasPrefix(name, "x-"):
		default:
			fail(method, "%s: found the unknown key %s; expected a method, summary, description, servers or parameters", key.Value,
				method.Excerpt())
		}
	})
}

// chooses reports whether all filters of operations choose one. Each is asked, so that each knows what there is.
func (d *openAPI) chooses(o *operation) bool {
	id, tag := d.operations.chooses(o.node.StringAt("operationId")), d.tags.chooses(tagsOf(o.node)...)
	return d.importer.only.chooses(o.name()) && id && tag
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
		at, what, form := d.scheme(scheme)
		tools := schemes[scheme]
		names := strings.Join(tools[:min(len(tools), 3)], ", ")
		if len(tools) > 3 {
			names += fmt.Sprintf(" and %d more", len(tools)-3)
		}
		how := "the gateway cannot send it there"
		switch {
		case form == nil:
		case form.In == tool.InBearer:
			how = `import with --credential env:NAME, or add to their run: credential: "env:NAME"`
		case form.In == tool.InHeader:
			how = fmt.Sprintf(
				`import with --credential env:NAME, or add to their run: credential: {in: header, name: %s, value: "env:NAME"}`, form.Name)
		case form.In == tool.InBasic:
			how = `add to their run: credential: {in: basic, user: USER, password: "env:NAME"}`
		}
		d.importer.out.Changed = append(d.importer.out.Changed,
			at.Fault("%s: found that the credential %q (%s) is required, and is never an argument; %s", names, scheme, what, how))
	}
}

// giveCredential states the credential of an operation that one scheme is enough for, where the options
// have its place.
func (o *operation) giveCredential(scheme string) bool {
	_, _, form := o.scheme(scheme)
	for i, stated := range o.options.Credentials {
		name, place := splitCredential(stated)
		if name != "" && name != scheme || form == nil || form.In == tool.InBasic {
			continue
		}
		form.Secret = place
		o.tool.definition.Run.Credential = form
		o.given[i] = true
		return true
	}
	return false
}

// splitCredential splits [SCHEME=]PLACE. A path starts in the working directory.
func splitCredential(stated string) (scheme, place string) {
	if place = stated; !tool.IsReference(place) {
		scheme, place, _ = strings.Cut(stated, "=")
	}
	if path, isFile := strings.CutPrefix(place, "file:"); isFile {
		if absolute, err := filepath.Abs(path); err == nil {
			place = "file:" + absolute
		}
	}
	return scheme, place
}

// checkCredentials reports a credential that is no place, so that a secret itself is never written, and after an
// import one that no operation asks for.
func (d *openAPI) checkCredentials(imported bool) error {
	for i, stated := range d.options.Credentials {
		scheme, place := splitCredential(stated)
		switch {
		case !tool.IsReference(place) || strings.HasPrefix(place, "command:"):
			return errors.New("--credential is no place of a secret; expected env:NAME or file:PATH, or SCHEME=env:NAME for one security scheme of several")
		case imported && !d.given[i] && scheme != "":
			return fmt.Errorf("--credential: no chosen operation asks for %q alone, as a bearer token or in a header", scheme)
		case imported && !d.given[i]:
			return errors.New("--credential: no chosen operation asks for a bearer token, or for a key in a header")
		}
	}
	return nil
}

// IsOpenAPI reports whether a file is meant to be an OpenAPI document, of whatever version.
func IsOpenAPI(file string, data []byte) bool {
	kind, _ := LooksLike(file, data)
	return kind == KindOpenAPI
}
