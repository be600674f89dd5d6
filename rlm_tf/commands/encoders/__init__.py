"""What `rlm_tf pretrain`, `finetune`, `classifier` and their models' users do."""
