package toolimport

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/tool"
)

func (o *operation) read() {
	if !o.checkKeys(o.node, "an operation", "operationId", "summary", "description", "parameters", "requestBody", "responses",
		"security", "servers", "tags", "deprecated", "callbacks", "externalDocs") {
		return
	}
	d := &o.tool.definition
	d.Name = o.name()
	d.Description = o.description()
	switch o.method {
	case "GET", "HEAD":
		d.Kind, d.Effect = "fetch", "read"
	case "PUT":
		d.Kind, d.Effect = "edit", "idempotent"
	case "DELETE":
		d.Kind, d.Effect = "delete", "idempotent"
	default:
		d.Kind, d.Effect = "edit", "once"
	}
	d.Run = tool.Run{Type: "http", Method: o.method, URL: o.server() + o.path, Addresses: o.options.Addresses}
	if strings.ContainsAny(o.path, "?#") {
		o.reportFault(o.tool.node, "found ? or # in the path; expected only a path")
	}
	o.schemas, o.argumentNames = newSchemaTranslator(o), map[string]bool{}
	o.parameters()
	o.body()
	o.noteCredentials()
	o.tool.schemas["input_schema"] = o.node.With(o.arguments())
}

// name is the tool's name.
func (o *operation) name() string {
	if _, id, ok := o.node.Child("operationId"); ok && id.IsString() {
		return o.options.Prefix + toolName(id.Value)
	}
	return o.options.Prefix + toolName(strings.ToLower(o.method)+o.path)
}

// arguments is the one schema of all arguments.
func (o *operation) arguments() *yaml.Node {
	member := func(key string, value *yaml.Node) []*yaml.Node { return []*yaml.Node{scalarAt(o.node, key), value} }
	root := mappingAt(o.node, member("type", scalarAt(o.node, "object"))...)
	if len(o.required) > 0 {
		list := sequenceAt(o.node)
		for _, name := range o.required {
			list.Content = append(list.Content, scalarAt(o.node, name))
		}
		root.Content = append(root.Content, member("required", list)...)
	}
	if len(o.properties) > 0 {
		root.Content = append(root.Content, member("properties", mappingAt(o.node, o.properties...))...)
	}
	if defs := o.schemas.definitions(); len(defs) > 0 {
		root.Content = append(root.Content, member("$defs", mappingAt(o.node, defs...))...)
	}
	o.schemas.finish()
	return root
}

// description is the operation's summary and description.
func (o *operation) description() string {
	var texts []string
	for _, from := range []document.Node{o.node, o.item} {
		for _, key := range []string{"summary", "description"} {
			if s := strings.TrimSpace(from.StringAt(key)); s != "" && !slices.Contains(texts, s) {
				texts = append(texts, s)
			}
		}
		if len(texts) > 0 {
			break
		}
	}
	return strings.Join(texts, "\n\n")
}

// server is the URL before the path. Servers of the operation, or of its path, take
// precedence over those of the document.
func (o *operation) server() string {
	for _, from := range []document.Node{o.node, o.item} {
		key, own, ok := from.Child("servers")
		if !ok || own.IsList() && len(own.Content) == 0 {
			continue
		}
		if o.options.URL != "" {
			o.reportFault(key, "found servers of its own beside --url; expected none: its requests would go elsewhere than the document's")
			return ""
		}
		base, problem := soleServer(own, o.options.Location)
		if problem != "" {
			o.reportFault(key, "%s", problem)
		}
		return base
	}
	return o.base
}

// body reads the body, which is one argument. If it has no form that can be judged, an
// optional body is left out.
func (o *operation) body() {
	key, stated, ok := o.node.Child("requestBody")
	if !ok {
		return
	}
	body, problem := o.follow(stated)
	if problem != "" {
		o.reportFault(stated, "%s", problem)
		return
	}
	if !o.checkKeys(body, "a request body", "description", "content", "required") {
		return
	}
	required := o.flag(body, "required", false)
	media, problem := o.media(body)
	if o.method == "GET" || o.method == "HEAD" {
		problem = "found a request body; expected none with the method " + o.method
	}
	if problem != "" {
		o.leaveOut(key, required, problem)
		return
	}
	name := "body"
	if o.argumentNames[name] {
		name = "request_body"
	}
	if o.argumentNames[name] {
		o.reportFault(key, "found parameters named body and request_body beside a body; expected a free name for it")
		return
	}
	schema := mappingAt(key)
	if _, stated, ok := media.Child("schema"); ok {
		schema = o.schemas.translate(stated, 0)
	} else {
		o.reportChange(key, "found a body of which nothing is said; any JSON is taken for it")
	}
	schema = o.withDescription(schema, body)
	if required {
		o.required = append(o.required, name)
	}
	o.add(tool.Parameter{Argument: name, In: "body"}, key, schema)
}

// media is the JSON media type of a body.
func (o *operation) media(body document.Node) (media document.Node, problem string) {
	_, content, ok := body.Child("content")
	if !ok || !content.IsMapping() || len(content.Content) == 0 {
		return document.Node{}, "found a request body without content; expected application/json"
	}
	var others []string
	for i := 0; i+1 < len(content.Content); i += 2 {
		kind, _, _ := strings.Cut(content.Content[i].Value, ";")
		if kind = strings.ToLower(strings.TrimSpace(kind)); kind == "application/json" || kind == "*/*" {
			media, problem := o.follow(content.With(content.Content[i+1]))
			if problem == "" && !o.checkKeys(media, "what the body is", "schema", "example", "examples", "encoding") {
				problem = "found a body that cannot be read; expected a schema"
			}
			return media, problem
		}
		others = append(others, content.Content[i].Value)
	}
	return document.Node{}, fmt.Sprintf("found a request body of %q; expected application/json", strings.Join(others, ", "))
}

// noteCredentials states the credential of the operation where the options have it, and else collects those
// that it needs: those of the alternative whose first is sent as Authorization: Bearer, else those of the first one.
func (o *operation) noteCredentials() {
	_, security, ok := o.node.Child("security")
	if !ok {
		if _, security, ok = o.openAPI.root.Child("security"); !ok {
			return
		}
	}
	if !security.IsList() {
		o.reportFault(security, "found %s; expected a list of what is asked for", security.TypeName())
		return
	}
	var chosen, alone []string
	for i, c := range security.Content {
		if c.Kind != yaml.MappingNode || len(c.Content) == 0 {
			return // without any is as good
		}
		var names []string
		for j := 0; j < len(c.Content); j += 2 {
			names = append(names, c.Content[j].Value)
		}
		if len(names) == 1 {
			alone = append(alone, names[0])
		}
		_, _, form := o.scheme(names[0])
		if i == 0 {
			chosen = names
		}
		if form != nil && form.In == tool.InBearer && len(names) == 1 {
			chosen = names
			break
		}
	}
	if len(chosen) == 1 {
		alone = append([]string{chosen[0]}, alone...)
	}
	if slices.ContainsFunc(alone, o.giveCredential) {
		return
	}
	o.credentialsOf[o.tool.definition.Name] = chosen
}
