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
		Long: `Print the JSON Schema (2020-12) of a kind of configuration file, for editors: it
completes keys, explains them, and marks what is wrong while you type. Without
KIND it is that of the main file. The kinds, and the usual names of their files:

` + strings.Join(lines, "\n") + `

An editor with the YAML language server finds the schema by the first line of a file:
  ` + configs.SchemaLine("callgate") + `

A schema sees the values of one file. Rules between files, and between some keys, are
those of config check alone.`,
		Example: `  callgate config schema > callgate.schema.json
  callgate config schema limits`,
		Args:      cobra.MaximumNArgs(1),
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
