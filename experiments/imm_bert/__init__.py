"""Does induced model matching help while an encoder is fine-tuned?"""
