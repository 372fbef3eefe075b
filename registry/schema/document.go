package schema

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// subschema is one schema inside a document: a bool or an object of keywords.
type subschema struct {
	pointer string // from the document's root
	raw     any    // bool or map[string]any
	base    string // URI that references inside are resolved against
	doc     *document
	// names are the keywords of an object, sorted, and children those that hold schemas, in their order.
	names    []string
	children []applicator
}

// applicator is a keyword that holds schemas, in the order of the document or of sorted names.
type applicator struct {
	keyword string
	schemas []subschemaRef
}

// subschemaRef is a schema inside a keyword of another: under a name, or at an index.
type subschemaRef struct {
	name string
	sub  *subschema
}

// under returns the schemas inside a keyword.
func (s *subschema) under(keyword string) []subschemaRef {
	for _, c := range s.children {
		if c.keyword == keyword {
			return c.schemas
		}
	}
	return nil
}

func (s *subschema) object() map[string]any {
	m, _ := s.raw.(map[string]any)
	return m
}

// document is one JSON text with all its schemas.
type document struct {
	dialect   string
	root      *subschema
	all       []*subschema          // in the order of the walk, parents first
	byPointer map[string]*subschema // made for the first reference that asks for it
}

// at returns the schema at a pointer, or nil.
func (d *document) at(pointer string) *subschema {
	if d.byPointer == nil {
		d.byPointer = make(map[string]*subschema, len(d.all))
		for _, s := range d.all {
			d.byPointer[s.pointer] = s
		}
	}
	return d.byPointer[pointer]
}

// resolver resolves references among the documents of one tool: its own, and in
// tests those that a suite supplies.
type resolver struct {
	resources map[string]*subschema // by absolute URI without fragment
	anchors   map[string]*subschema // by absolute URI with fragment
	Options
	faults  []Fault
	bounded bool // there is an x-boundary
}

// baseURI is the base of a document that states no $id: a host that can never
// exist (RFC 2606).
const baseURI = "https://definition.invalid/schema"

func newResolver(r Options) *resolver {
	return &resolver{resources: map[string]*subschema{}, anchors: map[string]*subschema{}, Options: r}
}

func (l *resolver) report(pointer, message string) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, Fault{pointer, message})
	}
}

// add walks a document and indexes its schemas.
func (l *resolver) add(raw any, uri string) *document {
	d := &document{dialect: draft2020}
	if m, ok := raw.(map[string]any); ok {
		if s, ok := m["$schema"].(string); ok {
			if dialect, known := dialectOf(s); known {
				d.dialect = dialect
			}
		}
	}
	l.resources[uri] = nil
	d.root = l.walk(d, raw, "", uri)
	l.resources[uri] = d.root
	return d
}

func (l *resolver) walk(d *document, raw any, pointer, base string) *subschema {
	s := &subschema{pointer: pointer, raw: raw, base: base, doc: d}
	d.all = append(d.all, s)
	object, ok := raw.(map[string]any)
	if !ok {
		if _, ok := raw.(bool); !ok {
			l.report(pointer, "found "+kindOf(raw)+"; expected a schema: an object, true or false")
			s.raw = false
		}
		return s
	}
	l.identify(s, object)
	if _, has := object[boundaryKey]; has {
		l.bounded = true
	}
	s.names = sortedNames(object)
	for _, name := range s.names {
		var inside []subschemaRef
		switch keywords[name].shape {
		case oneSchema:
			inside = []subschemaRef{{"", l.walk(d, object[name], child(pointer, name), s.base)}}
		case schemaList:
			list, _ := object[name].([]any)
			at := child(pointer, name)
			for i, v := range list {
				inside = append(inside, subschemaRef{"", l.walk(d, v, childIndex(at, i), s.base)})
			}
		case schemaMap, definitions:
			members, _ := object[name].(map[string]any)
			at := child(pointer, name)
			for _, k := range sortedNames(members) {
				inside = append(inside, subschemaRef{k, l.walk(d, members[k], child(at, k), s.base)})
			}
		default:
			continue
		}
		s.children = append(s.children, applicator{name, inside})
	}
	return s
}

func sortedNames(object map[string]any) []string {
	names := slices.AppendSeq(make([]string, 0, len(object)), maps.Keys(object))
	slices.Sort(names)
	return names
}

// identify enters the names that a schema gives itself.
func (l *resolver) identify(s *subschema, object map[string]any) {
	if id, ok := object["$id"].(string); ok {
		uri, fragment, ok := resolveURI(s.base, id)
		if !ok || fragment != "" {
			l.report(child(s.pointer, "$id"), "found "+parser.Quote(id)+"; expected a URI without a fragment")
			return
		}
		if _, twice := l.resources[uri]; twice && l.resources[uri] != nil {
			l.report(child(s.pointer, "$id"), "found "+parser.Quote(id)+" a second time; expected each $id once")
			return
		}
		s.base = uri
		l.resources[uri] = s
	}
	if anchor, ok := object["$anchor"].(string); ok {
		name := s.base + "#" + anchor
		if l.anchors[name] != nil {
			l.report(child(s.pointer, "$anchor"), "found "+parser.Quote(anchor)+" a second time; expected each $anchor once")
		}
		l.anchors[name] = s
	}
}

// target finds the schema that the $ref of s leads to.
func (l *resolver) target(s *subschema) (*subschema, string) {
	ref, ok := s.object()["$ref"].(string)
	if !ok {
		return nil, "found " + kindOf(s.object()["$ref"]) + "; expected a reference as text"
	}
	uri, fragment, ok := resolveURI(s.base, ref)
	if !ok {
		return nil, "found " + parser.Quote(ref) + "; expected a reference such as #/$defs/name"
	}
	root := l.resources[uri]
	if root == nil {
		root = l.fetch(uri)
	}
	if root == nil {
		if strings.HasPrefix(uri, baseURI) {
			return nil, "found " + parser.Quote(ref) + ", which leads nowhere; expected a place of this schema such as #/$defs/name"
		}
		return nil, "found " + parser.Quote(ref) +
			", which leads to another document; expected a place of this schema: nothing is ever fetched"
	}
	var found *subschema
	switch {
	case fragment == "":
		found = root
	case fragment[0] == '/':
		found = root.doc.at(root.pointer + canonicalPointer(fragment))
	default:
		found = l.anchors[uri+"#"+fragment]
	}
	if found == nil {
		return nil, "found " + parser.Quote(ref) + ", which leads to no schema; expected a place of this schema such as #/$defs/name"
	}
	return found, ""
}

// fetch asks the supplier of documents; only tests have one.
func (l *resolver) fetch(uri string) *subschema {
	if l.remotes == nil {
		return nil
	}
	raw, ok := l.remotes(uri)
	if !ok {
		return nil
	}
	return l.add(raw, uri).root
}

// canonicalPointer spells a pointer as the index does: ~1 and ~0 are the only
// escapes, and an escape that is none stays and finds nothing.
func canonicalPointer(p string) string {
	tokens := strings.Split(p, "/")
	var b strings.Builder
	for _, t := range tokens[1:] {
		b.WriteString(child("", refusal.UnescapePointer(t)))
	}
	return b.String()
}

// resolveURI resolves a reference and splits off its decoded fragment.
func resolveURI(base, ref string) (uri, fragment string, ok bool) {
	r, err := url.Parse(ref)
	if err != nil || strings.Contains(ref, `\`) {
		return "", "", false
	}
	b, err := url.Parse(base)
	if err != nil {
		return "", "", false
	}
	fragment = r.Fragment
	r.Fragment, r.RawFragment = "", ""
	if r.String() == "" {
		return base, fragment, true
	}
	if b.Opaque != "" && !r.IsAbs() {
		return "", "", false
	}
	return b.ResolveReference(r).String(), fragment, true
}

// kindOf names the JSON type of a decoded value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
