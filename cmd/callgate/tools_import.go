package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/text"
)

func newToolsImport(e env) *cobra.Command {
	parent := group("import", "Turn foreign tool definitions into a tool file", newImportMCP(e), newImportOpenAI(e), newImportAnthropic(e),
		newImportResponses(e), newImportOpenAPI(e), newImportACP(e))
	parent.Long = `Turn foreign tool definitions into a tool file for registry.files, on standard output.

Schemas in the words of other dialects are rewritten: an object that declares no members gets
additionalProperties: true, a format that is not judged is left out. A tool that cannot be
judged strictly is left out. Standard error names both, with the reason. Change the effects
where you know better.`
	return parent
}

func newImportMCP(e env) *cobra.Command {
	var prefix string
	var o importFlags
	c := &cobra.Command{
		Use:   "mcp FILE|URL|-",
		Short: "Import tools of the Model Context Protocol",
		Long: `Import the tools of an MCP server's list (a JSON array, an object with "tools", or a response)
with effect once and run.type client; annotations are ignored. Hidden characters of
descriptions become escapes; a tool with one elsewhere is left out.

Exit code 1: a tool was left out.`,
		Example: "  mkdir -p tools && callgate tools import mcp tools.json > tools/imported.yaml",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return imports(c.Context(), e, args, o, func(name string, data []byte) (*toolimport.Result, error) {
				return toolimport.MCP(name, data, prefix, o.only...)
			})
		},
	}
	c.Flags().StringVar(&prefix, "prefix", "", "a `PREFIX` for every name, such as github.")
	o.add(c)
	return c
}

// newImportOfRequest completes the command that imports the tools of a request to a model.
func newImportOfRequest(e env, c *cobra.Command,
	read func(name string, data []byte, only ...string) (*toolimport.Result, error)) *cobra.Command {
	var o importFlags
	c.Args = arguments(1, 1)
	c.RunE = func(c *cobra.Command, args []string) error {
		return imports(c.Context(), e, args, o, func(name string, data []byte) (*toolimport.Result, error) {
			return read(name, data, o.only...)
		})
	}
	o.add(c)
	return c
}

func newImportAnthropic(e env) *cobra.Command {
	return newImportOfRequest(e, &cobra.Command{
		Use:   "anthropic FILE|URL|-",
		Short: "Import the tools of a request of Anthropic Messages",
		Long: `Import the "tools" of a request to Anthropic's /v1/messages (the array, or the whole request)
with effect once and run.type client: the application runs them. Its dated types (bash_*,
text_editor_*, memory_*, computer_* and the toolsets) get the API's schema; a member of a
toolset is named computer.left_click. Tools that the provider runs are left out.

Exit code 1: a tool was left out.`,
		Example: "  mkdir -p tools && callgate tools import anthropic request.json > tools/imported.yaml",
	}, toolimport.Anthropic)
}

func newImportResponses(e env) *cobra.Command {
	return newImportOfRequest(e, &cobra.Command{
		Use:   "responses FILE|URL|-",
		Short: "Import the tools of a request of OpenAI Responses",
		Long: `Import the "tools" of a request to OpenAI's /v1/responses (the array, or the whole request,
with additional_tools of its input) with effect once and run.type client: the application
runs them. Tools of a namespace are named NAMESPACE.NAME. A custom tool has one argument,
input, a text, whose grammar is not checked. shell, local_shell, apply_patch and computer get
the API's schema. Tools that the provider runs are left out.

Exit code 1: a tool was left out.`,
		Example: "  mkdir -p tools && callgate tools import responses request.json > tools/imported.yaml",
	}, toolimport.Responses)
}

func newImportOpenAI(e env) *cobra.Command {
	return newImportOfRequest(e, &cobra.Command{
		Use:   "openai FILE|URL|-",
		Short: "Import the tools of a chat completions request",
		Long: `Import the "tools" of a chat completions request (the array, or the whole request) with effect
once and run.type client: the application runs them. Absent parameters are no arguments;
strict is not needed. Custom tools are left out.

Exit code 1: a tool was left out.`,
		Example: "  mkdir -p tools && callgate tools import openai request.json > tools/imported.yaml",
	}, toolimport.OpenAI)
}

func newImportOpenAPI(e env) *cobra.Command {
	var o toolimport.OpenAPIOptions
	var flags importFlags
	var server string
	c := &cobra.Command{
		Use:   "openapi FILE|URL|-",
		Short: "Import the operations of an OpenAPI document",
		Long: `Import the operations of an OpenAPI 3 document (JSON or YAML) as tools of run.type http. The
arguments are the parameters and, as one argument, the JSON body. The name is the
operationId, or method and path. GET and HEAD are read, PUT and DELETE idempotent, others once:
change it where you know better.

A document may be a file, a URL (https, or this machine), or found at a running server with
--server. Servers that it states are relative to where it was found; --url states one where
it has none, several, or one without a host. Its digest is printed.

--operation, --tag, --path and --only choose operations that fit all of them; in paths, * is a
segment or part of it, /** all below. A value that fits nothing is an error.

Left out, with the reason: bodies that are not JSON, cookies, parameters that are objects,
references to other files. A credential is never an argument: --credential names its place,
and tools send it as the document says; without it, a note says what to write.

Exit code 1: a tool was left out.`,
		Example: "  mkdir -p tools && callgate tools import openapi --prefix pets. petstore.yaml > tools/pets.yaml",
		Args:    arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := notEmpty(c, "url", "server"); err != nil {
				return err
			}
			o.Only = flags.only
			var name string
			var data []byte
			var err error
			switch {
			case server != "" && len(args) == 0:
				o.Location, data, err = fetchFromServer(c.Context(), e, server)
			case len(args) == 1 && server == "" && isWebURL(args[0]):
				o.Location, data, err = fetch(c.Context(), e, args[0])
			case len(args) == 1 && server == "":
				name, data, err = e.Definitions(c.Context(), args)
			default:
				return errors.New("expected a file, a URL, or --server URL")
			}
			if err != nil {
				return err
			}
			if o.Location != nil {
				name = shownURL(o.Location)
			}
			imported, err := toolimport.OpenAPI(name, data, o)
			if err != nil {
				return err
			}
			return printImported(e, imported, flags.notes.all)
		},
	}
	c.Flags().StringVar(&o.Prefix, "prefix", "", "a `PREFIX` for every name, such as pets.")
	c.Flags().StringVar(&o.URL, "url", "", "the `URL` of the server (default: the document's)")
	c.Flags().StringSliceVar(&o.Addresses, "addresses", nil, "`ADDRESSES` or prefixes that tools may connect to (default: public ones)")
	c.Flags().StringArrayVar(&o.Credentials, "credential", nil,
		"the `PLACE` of the credential: env:NAME or file:PATH, or SCHEME=PLACE for one security scheme (repeatable)")
	c.Flags().StringArrayVar(&o.Operations, "operation", nil, "the operation with this `ID` (repeatable)")
	c.Flags().StringArrayVar(&o.Tags, "tag", nil, "operations with this `TAG` (repeatable)")
	c.Flags().StringArrayVar(&o.Paths, "path", nil, "operations of paths that match this `PATTERN`, such as /pets/** (repeatable)")
	c.Flags().StringVar(&server, "server", "", "find the document at the `URL` of a running server")
	flags.add(c)
	completeChoices(e, c)
	return c
}

func newImportACP(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "acp",
		Short: "Print the tools of the Agent Client Protocol",
		Long: `Print a tool file with the tools that an editor offers to agents (acp.fs.read, acp.fs.write,
acp.terminal.create, which the editor runs) and acp.permission.KIND, as which "callgate acp
-- COMMAND" judges permissions. The protocol fixes them; change descriptions, schemas and
effects as you need.`,
		Example: "  mkdir -p tools && callgate tools import acp > tools/acp.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Stdout.Write(toolimport.ACP())
			return err
		},
	}
}

// imports reads a file of definitions and prints what became of it.
func imports(ctx context.Context, e env, args []string, o importFlags,
	read func(name string, data []byte) (*toolimport.Result, error)) error {
	name := args[0]
	var data []byte
	var err error
	if isWebURL(name) {
		var location *url.URL
		if location, data, err = fetch(ctx, e, name); err == nil {
			name = shownURL(location)
		}
	} else {
		name, data, err = e.Definitions(ctx, args)
	}
	if err != nil {
		return err
	}
	imported, err := read(name, data)
	if err != nil {
		return err
	}
	return printImported(e, imported, o.notes.all)
}

// printImported prints the tool file, and says what was changed and left out.
func printImported(e env, im *toolimport.Result, all bool) error {
	printNotes(e, "changed", im.Changed, all)
	printNotes(e, "left out", im.Refused, all)
	fmt.Fprintf(e.Stderr, "%s imported, %s, %s for leaving tools out\n", text.Count(len(im.Names), "tool"),
		text.Count(len(im.Changed), "change"), text.Count(len(im.Refused), "reason"))
	if _, err := e.Stdout.Write(im.YAML); err != nil {
		return err
	}
	if len(im.Refused) > 0 {
		return cli.ErrRefused
	}
	return nil
}
