-- Up Migration

alter type app.settlement
  -- the input came with the job: none is stored that would have to go
  add attribute input_is_inline boolean;
