package validation_test

import (
	"context"
	"fmt"
	"strings"

	"clifftop/experiments/validation"
)

func Example() {
	const csv = `run_id,engine,engine_version,model,gpu,load_mode,concurrency,n_requests,input_tokens_mean,output_tokens_nominal,tpot_mean_ms
mine,vllm,0.15.1,llama-3.1-8b,H100,closed,16,160,1000,200,7.6
yours,vllm,0.15.1,llama-13b,H100,closed,16,160,1000,200,9.9
`
	ref, err := validation.Read("runs.csv", strings.NewReader(csv))
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := validation.Run(context.Background(), ref, validation.Plan(ref), nil, validation.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range report.Rows {
		if row.Status != validation.Scored {
			fmt.Println(row.RunID, row.Reason)
			continue
		}
		fmt.Printf("%s: the time per token is simulated to 15 %%: %v\n", row.RunID,
			max(-*row.Error("tpot_mean_ms"), *row.Error("tpot_mean_ms")) < 0.15)
	}
	// Output:
	// mine: the time per token is simulated to 15 %: true
	// yours model: no model "llama-13b"; nearest: llama-2-13b, llama-2-7b, llama-3-8b
}
