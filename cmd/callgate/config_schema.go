package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
)

func newConfigSchema(e env) *cobra.Command {
	var kinds, lines []string
	for _, k := range configs.FileKinds() {
		kinds = append(kinds, k.Name)
		lines = append(lines, fmt.Sprintf("  %-15s %s", k.Name, strings.Join(k.Names, ", ")))
	}
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of configuration file",
		Long: `Print the JSON Schema (2020-12) of a kind of configuration file (default: the main file), for
completion and checks in editors. Kinds, with the usual names of their files:

` + strings.Join(lines, "\n") + `

The YAML language server finds the schema by the first line of a file:
  ` + configs.SchemaLine("callgate") + `

Rules between files, and between some keys, are those of config check only.`,
		Example:   `  callgate config schema limits`,
		Args:      arguments(0, 1),
		ValidArgs: kinds,
		RunE: func(_ *cobra.Command, args []string) error {
			schema, err := configs.Schema(append(args, kinds[0])[0])
			if err != nil {
				return err
			}
			_, err = e.Stdout.Write(schema)
			return err
		},
	}
}
